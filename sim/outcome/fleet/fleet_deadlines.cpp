// SPDX-License-Identifier: Apache-2.0
// Compares ends with deadlines.
#include "sim/outcome/fleet/fleet_deadlines.h"

#include <algorithm>

namespace orrery {

FleetDeadlines fleet_deadlines(const ClusterJobs& list, const FleetRecord& record) {
  FleetDeadlines out;
  std::int64_t late_jobs = 0;
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    const ClusterJob& job = list.jobs[i];
    const JobRecord& one = record.jobs[i];
    if (one.delayed.us > 0) {
      ++out.delayed;
      out.delay += to_seconds(one.delayed);
    }
    if (job.deadline == fleet_never || one.cancelled || job.submit > record.last_end) continue;
    const FleetTime end = std::min(one.end, record.last_end);  // of what is known
    const bool ended = one.end <= record.last_end;
    if (!ended && !one.rejected && due(job) > record.last_end) continue;
    ++out.jobs;
    if (job.length > job.deadline) ++out.too_long;
    if (ended && one.end <= due(job)) ++out.met;
    if (one.rejected || end <= due(job)) continue;
    ++late_jobs;
    out.late += to_seconds(end - due(job));
  }
  if (out.delayed > 0) out.delay = out.delay * (1.0 / static_cast<double>(out.delayed));
  if (late_jobs > 0) out.late = out.late * (1.0 / static_cast<double>(late_jobs));
  return out;
}

}  // namespace orrery
