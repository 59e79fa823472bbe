// SPDX-License-Identifier: Apache-2.0
// Chooses whom to stop: the lowest priority, of these whoever began last.
#include "sim/engine/decisions/preempt_pass.h"

#include <algorithm>

#include "sim/engine/fleet/stop_order.h"

namespace orrery {

// Jobs of lower priority hold what is missing.
bool PreemptPass::could_help(std::int64_t gpus, std::int32_t priority) const {
  std::int64_t lower = state_.slots().free();
  for (const auto& [other, save] : state_.saves())
    if (state_.ranks().priority_of(other) >= priority) lower += state_.job(other).gpus;
  for (const auto& [other, held] : state_.ranks().held())
    if (other < priority) lower += held;
  return lower >= gpus;
}

std::vector<std::uint32_t> PreemptPass::candidates(std::int32_t priority, FleetTime now) const {
  std::vector<std::uint32_t> jobs;
  state_.ends().each([&](const RunningEnd& end) {
    const bool lower = state_.ranks().priority_of(end.job) < priority &&
                       state_.job(end.job).preemptible && !state_.saves().contains(end.job);
    if (lower && state_.run_of(end.job).placed + question_.policy.preempt_after <= now)
      jobs.push_back(end.job);
    return true;
  });
  sort_for_stops(state_, jobs);
  return jobs;
}

bool PreemptPass::make_room(FleetTime now) {
  const WaitingJob head = state_.waiting().head();
  const std::int32_t priority = state_.ranks().priority_of(head.job);
  if (!could_help(head.gpus, priority)) return false;
  const auto stopped = fewest_stops(state_, head.job, candidates(priority, now));
  if (!stopped) return false;
  for (const std::uint32_t job : *stopped) state_.preempt(job, now);
  return !stopped->empty();
}

}  // namespace orrery
