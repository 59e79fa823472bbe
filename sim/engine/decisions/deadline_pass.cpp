// SPDX-License-Identifier: Apache-2.0
// Weighs a head's deadline against those of jobs that run.
#include "sim/engine/decisions/deadline_pass.h"

#include <algorithm>

#include "sim/engine/fleet/future_room.h"
#include "sim/engine/fleet/stop_order.h"
#include "sim/engine/jobs/job_run.h"

namespace orrery {

bool DeadlinePass::is_urgent(const WaitingJob& head, FleetTime now) const {
  const FleetTime end = due(state_.job(head.job));
  if (end == fleet_never || end - head.limit < now) return false;
  FutureRoom future(state_);
  const FleetTime start = first_place(state_, head.job, future);
  return start > end - head.limit || !future.fits(head.job);
}

// Stopped now, going on so long after it left its place, with what it has yet to do of its limit.
bool DeadlinePass::can_wait(std::uint32_t number, const StopCost& cost, FleetTime wait) const {
  const ClusterJob& job = state_.job(number);
  if (due(job) == fleet_never) return true;
  const JobWork& work = state_.work_of(number);
  const JobRun again{.begin = state_.start_overhead(number) + cost.again,
                     .step_ps = work.step_ps,
                     .done = cost.kept};
  return cost.leaves + wait + end_of(work, again, steps_of(work, job.limit)) <= due(job);
}

std::vector<std::uint32_t> DeadlinePass::candidates(const WaitingJob& head, FleetTime now) const {
  const FleetTime end = due(state_.job(head.job));
  // Whoever is stopped may be kept back as well.
  const FleetTime wait = std::max({head.limit, policy_.requeue.first, policy_.requeue.most});
  std::vector<std::uint32_t> jobs;
  state_.ends().each([&](const RunningEnd& running) {
    const ClusterJob& job = state_.job(running.job);
    const bool old = state_.run_of(running.job).placed + policy_.preempt_after <= now;
    if (!job.preemptible || due(job) <= end || !old || state_.saves().contains(running.job))
      return true;
    const StopCost cost = state_.cost_of_stop(running.job, now);
    if (cost.leaves + head.limit <= end && can_wait(running.job, cost, wait))
      jobs.push_back(running.job);
    return true;
  });
  sort_for_stops(state_, jobs);
  std::stable_sort(jobs.begin(), jobs.end(), [&](std::uint32_t a, std::uint32_t b) {
    return due(state_.job(a)) > due(state_.job(b));
  });
  return jobs;
}

bool DeadlinePass::make_room(FleetTime now) {
  const WaitingJob head = state_.waiting().head();
  if (!is_urgent(head, now)) return false;
  const auto stopped = fewest_stops(state_, head.job, candidates(head, now));
  if (!stopped) return false;
  for (const std::uint32_t job : *stopped) state_.preempt(job, now);
  return !stopped->empty();
}

}  // namespace orrery
