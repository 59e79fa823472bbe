// SPDX-License-Identifier: Apache-2.0
// Keeps priorities, and sums of what they hold.
#include "sim/engine/jobs/job_ranks.h"

namespace orrery {

JobRanks::JobRanks(const std::vector<ClusterJob>& jobs, const FleetPolicy& policy)
    : jobs_(jobs), counts_(policy.preempts) {
  if (policy.order == JobOrder::las) demoted_.resize(jobs.size(), 0);
}

std::int32_t JobRanks::priority_of(std::uint32_t job) const {
  if (by_service()) return demoted_[job] != 0 ? 0 : 1;
  return borrowed_.contains(job) ? borrowed_priority : jobs_[job].priority;
}

void JobRanks::count(std::uint32_t job, std::int32_t sign) {
  if (!counts_) return;
  const std::int32_t priority = priority_of(job);
  std::int64_t& held = held_[priority];
  held += sign * std::int64_t{jobs_[job].gpus};
  if (held == 0) held_.erase(priority);
}

}  // namespace orrery
