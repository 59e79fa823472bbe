// SPDX-License-Identifier: Apache-2.0
// Serves the least remaining work first.
#include "sim/outcome/fleet/fleet_bounds.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "workloads/cluster_job/job_dependencies.h"

namespace orrery {

Seconds least_mean_completion(const ClusterJobs& list, std::int64_t gpus) {
  // Remaining work in seconds of the whole cluster, least first. Shortest remaining first has the
  // least mean completion on one machine (Schrage 1968), and a fluid can do what gangs do.
  std::priority_queue<double, std::vector<double>, std::greater<>> open;
  double now = 0, sum = 0, lengths = 0;
  std::int64_t count = 0;
  const auto is_rejected = [&](const ClusterJob& job) { return job.gpus > gpus; };
  const std::vector<bool> cancelled = cancelled_jobs(list, is_rejected);
  std::size_t next = 0;  // of dependencies, which stand in order of jobs
  const auto comes_after = [&](std::size_t job) {
    const auto& all = list.dependencies;
    while (next < all.size() && all[next].job < job) ++next;
    return next < all.size() && all[next].job == job;
  };
  const auto serve_until = [&](double end) {
    while (!open.empty()) {
      const double left = open.top();
      open.pop();
      if (now + left > end) {
        open.push(left - (end - now));
        break;
      }
      now += left;
      sum += now;
    }
    now = end;
  };
  double dependants = 0;
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    const ClusterJob& job = list.jobs[i];
    if (is_rejected(job) || (!cancelled.empty() && cancelled[i])) continue;
    const double submit = to_seconds(job.submit).si(), length = to_seconds(job.length).si();
    lengths += length;
    ++count;
    if (comes_after(i)) {
      dependants += length;
      continue;
    }
    serve_until(submit);
    open.push(length * gpus_asked(job) / static_cast<double>(gpus));
    sum -= submit;
  }
  while (!open.empty()) {
    now += open.top();
    open.pop();
    sum += now;
  }
  if (count == 0) return {};
  return Seconds(std::max(sum + dependants, lengths) / static_cast<double>(count));
}

}  // namespace orrery
