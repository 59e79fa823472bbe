// SPDX-License-Identifier: Apache-2.0
// Orders jobs by priority and begin.
#include "sim/engine/fleet/stop_order.h"

#include <algorithm>

namespace orrery {

void sort_for_stops(const FleetState& state, std::vector<std::uint32_t>& jobs) {
  std::sort(jobs.begin(), jobs.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::int32_t one = state.ranks().priority_of(a), two = state.ranks().priority_of(b);
    if (one != two) return one < two;
    const FleetTime first = state.run_of(a).placed, second = state.run_of(b).placed;
    return first != second ? first > second : a > b;
  });
}

}  // namespace orrery
