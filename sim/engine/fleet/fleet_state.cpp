// SPDX-License-Identifier: Apache-2.0
// Starts and ends jobs on a shared cluster.
#include "sim/engine/fleet/fleet_state.h"

#include <algorithm>

namespace orrery {

FleetState::FleetState(const std::vector<ClusterJob>& jobs, const SlotShape& shape, JobPlace place,
                       std::uint64_t seed)
    : records(jobs.size()),
      jobs_(jobs),
      slots_(shape),
      placer_(place, seed),
      pool_(shape.hosts == 1),
      exact_(std::all_of(jobs.begin(), jobs.end(),
                         [](const ClusterJob& job) { return job.limit == job.length; })) {
  if (!pool_) grants_.resize(jobs.size());
}

bool FleetState::find(std::uint32_t job, Grants& out) {
  return placer_.find(slots_, jobs_[job].gpus, out);
}

void FleetState::start(std::uint32_t number, FleetTime now, Grants& grants) {
  const ClusterJob& job = jobs_[number];
  slots_.take(grants);
  JobRecord& record = records[number];
  record.start = now;
  record.end = now + job.length;
  ends_.insert({record.end, number, job.gpus});
  if (!exact_) limits_.insert({now + job.limit, number, job.gpus});
  if (pool_) return;
  count_groups(grants, record);
  grants_[number].swap(grants);
}

bool FleetState::end_jobs(FleetTime now) {
  bool early = false;
  while (next_end() <= now) {
    const RunningEnd end = ends_.first();
    ends_.pop_first();
    const ClusterJob& job = jobs_[end.job];
    if (!exact_) limits_.erase({records[end.job].start + job.limit, end.job, end.gpus});
    early = early || job.limit != job.length;
    if (pool_) {
      const HostGrant all{.host = 0, .hosts = 1, .gpus = end.gpus};
      slots_.give({&all, 1});
    } else {
      slots_.give(grants_[end.job]);
      Grants().swap(grants_[end.job]);
    }
  }
  return early;
}

void FleetState::count_groups(const Grants& grants, JobRecord& record) const {
  const auto& levels = slots_.shape().levels;
  std::int32_t last = -1;
  for (const HostGrant& g : grants) {
    record.hosts += g.hosts;
    if (levels.empty()) continue;
    const std::int32_t from = g.host / levels.front().reach;
    const std::int32_t to = (g.host + g.hosts - 1) / levels.front().reach;
    record.groups += to - from + (from == last ? 0 : 1);
    last = to;
  }
}

}  // namespace orrery
