// SPDX-License-Identifier: Apache-2.0
// Says who is stopped first where jobs must make room or free power.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

// Jobs that run: the lowest priority first, of these whoever began last.
void sort_for_stops(const FleetState& state, std::vector<std::uint32_t>& jobs);

}  // namespace orrery
