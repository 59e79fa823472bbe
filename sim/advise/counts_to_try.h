// SPDX-License-Identifier: Apache-2.0
// Knows the counts of accelerators at which searches look.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/fabric.h"

namespace orrery {

// The most accelerators that a count is searched for: twice the million that machines of the next
// years are planned for, and twenty times what has published starts and failures. Beyond it an
// answer would be extrapolation alone. A question may still name a larger count.
inline constexpr std::int64_t plan_most_gpus = INT64_C(1) << 21;

// Powers of two times what fits a scale-up domain, and times the domain, in `parts` steps an
// octave; from `low` to `high`, sorted.
std::vector<std::int64_t> plan_counts(const Fabric& fabric, std::int64_t low, std::int64_t high,
                                      int parts);

}  // namespace orrery
