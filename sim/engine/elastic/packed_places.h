// SPDX-License-Identifier: Apache-2.0
// Places jobs of chosen sizes so that as few as possible move.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/elastic/round_policy.h"

namespace orrery {

// Who holds its size stays where it is, unless a larger piece has no place otherwise. The others,
// larger pieces first: whole hosts, and a rest on the fullest host that has room. What is set aside
// for all (goodput_sizes.h) is at most what there is: then all find a place.
void place_packed(const RoundView& view, const std::vector<std::int32_t>& gpus,
                  std::vector<Grants>& places);

}  // namespace orrery
