// SPDX-License-Identifier: Apache-2.0
// Serves the least remaining work first.
#include "sim/outcome/fleet/fleet_bounds.h"

#include <algorithm>
#include <queue>
#include <vector>

namespace orrery {

Seconds least_mean_completion(const ClusterJobs& list, std::int64_t gpus) {
  // Remaining work in seconds of the whole cluster, least first. Shortest remaining first has the
  // least mean completion on one machine (Schrage 1968), and a fluid can do what gangs do.
  std::priority_queue<double, std::vector<double>, std::greater<>> open;
  double now = 0, sum = 0, lengths = 0;
  std::int64_t count = 0;
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
  for (const ClusterJob& job : list.jobs) {
    if (job.gpus > gpus) continue;
    const double submit = to_seconds(job.submit).si(), length = to_seconds(job.length).si();
    serve_until(submit);
    open.push(length * gpus_asked(job) / static_cast<double>(gpus));
    sum -= submit;
    lengths += length;
    ++count;
  }
  while (!open.empty()) {
    now += open.top();
    open.pop();
    sum += now;
  }
  if (count == 0) return {};
  return Seconds(std::max(sum, lengths) / static_cast<double>(count));
}

}  // namespace orrery
