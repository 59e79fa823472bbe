// SPDX-License-Identifier: Apache-2.0
// Says who is stopped first where jobs must make room or free power.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

// Jobs that run: the lowest priority first, of these whoever began last.
void sort_for_stops(const FleetState& state, std::vector<std::uint32_t>& jobs);

// Of jobs that may be stopped, in that order: as few as it takes until another one has a place and
// power once those that save now have left; nothing where all of them are not enough.
std::optional<std::vector<std::uint32_t>> fewest_stops(const FleetState& state, std::uint32_t job,
                                                       const std::vector<std::uint32_t>& in_order);

// A job has a place and power once those that save now have left: it is promised that.
bool waits_for_saves(const FleetState& state, std::uint32_t job);

}  // namespace orrery
