// SPDX-License-Identifier: Apache-2.0
// Chooses whom to stop: the lowest priority, of these whoever began last.
#include "sim/engine/decisions/preempt_pass.h"

#include <algorithm>

#include "sim/engine/fleet/future_room.h"
#include "sim/engine/fleet/stop_order.h"

namespace orrery {

// Jobs of lower priority hold what is missing.
bool PreemptPass::could_help(std::int64_t gpus, std::int32_t priority) const {
  std::int64_t lower = state_.slots().free();
  for (const auto& [other, held] : state_.ranks().held())
    if (other < priority) lower += held;
  return lower >= gpus;
}

std::vector<std::uint32_t> PreemptPass::candidates(std::int32_t priority, FleetTime now) const {
  std::vector<std::uint32_t> jobs;
  state_.ends().each([&](const RunningEnd& end) {
    const bool lower =
        state_.ranks().priority_of(end.job) < priority && state_.job(end.job).preemptible;
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
  FutureRoom future(state_);
  const auto fits = [&] { return future.fits(head.job); };
  std::vector<std::uint32_t> stopped;
  for (const std::uint32_t job : candidates(priority, now)) {
    if (fits()) break;
    future.give(job, state_.grants_of(job));
    stopped.push_back(job);
  }
  if (!fits()) return false;
  // Whoever came first into the choice may not be needed any more.
  std::erase_if(stopped, [&](std::uint32_t job) {
    future.take(job, state_.grants_of(job));
    if (fits()) return true;
    future.give(job, state_.grants_of(job));
    return false;
  });
  for (const std::uint32_t job : stopped) state_.preempt(job, now);
  return true;
}

}  // namespace orrery
