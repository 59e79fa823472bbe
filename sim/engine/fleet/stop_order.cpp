// SPDX-License-Identifier: Apache-2.0
// Orders jobs by priority and begin, and tries whom it takes.
#include "sim/engine/fleet/stop_order.h"

#include <algorithm>

#include "sim/engine/fleet/future_room.h"

namespace orrery {

void sort_for_stops(const FleetState& state, std::vector<std::uint32_t>& jobs) {
  std::sort(jobs.begin(), jobs.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::int32_t one = state.ranks().priority_of(a), two = state.ranks().priority_of(b);
    if (one != two) return one < two;
    const FleetTime first = state.run_of(a).placed, second = state.run_of(b).placed;
    return first != second ? first > second : a > b;
  });
}

namespace {

FutureRoom after_saves(const FleetState& state) {
  FutureRoom future(state);
  for (const auto& [job, save] : state.saves()) future.give(job, state.grants_of(job));
  return future;
}

}  // namespace

bool waits_for_saves(const FleetState& state, std::uint32_t job) {
  return !state.saves().empty() && after_saves(state).fits(job);
}

std::optional<std::vector<std::uint32_t>> fewest_stops(const FleetState& state, std::uint32_t job,
                                                       const std::vector<std::uint32_t>& in_order) {
  FutureRoom future = after_saves(state);
  std::vector<std::uint32_t> stopped;
  for (const std::uint32_t one : in_order) {
    if (future.fits(job)) break;
    future.give(one, state.grants_of(one));
    stopped.push_back(one);
  }
  if (!future.fits(job)) return std::nullopt;
  // Whoever came first into the choice may not be needed any more.
  std::erase_if(stopped, [&](std::uint32_t one) {
    future.take(one, state.grants_of(one));
    if (future.fits(job)) return true;
    future.give(one, state.grants_of(one));
    return false;
  });
  return stopped;
}

}  // namespace orrery
