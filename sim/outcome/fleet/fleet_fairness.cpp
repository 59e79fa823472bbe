// SPDX-License-Identifier: Apache-2.0
// Counts who was there with each job.
#include "sim/outcome/fleet/fleet_fairness.h"

#include <algorithm>
#include <vector>

namespace orrery {
namespace {

// Jobs that wait or run, added up over time.
class JobsThere {
 public:
  JobsThere(const ClusterJobs& jobs, const FleetRecord& record,
            const std::function<bool(const ClusterJob&)>& counts) {
    std::vector<std::pair<FleetTime, int>> changes;
    for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
      const JobRecord& one = record.jobs[i];
      const FleetTime from = eligible(jobs.jobs[i], one);
      if (one.rejected || one.cancelled || from > record.last_end || !counts(jobs.jobs[i]))
        continue;
      changes.emplace_back(from, 1);
      changes.emplace_back(std::min(one.end, record.last_end), -1);
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t there = 0;
    double sum = 0;
    for (const auto& [at, change] : changes) {
      if (!times_.empty()) sum += static_cast<double>(there) * to_seconds(at - times_.back()).si();
      times_.push_back(at);
      sums_.push_back(sum);
      there += change;
      there_.push_back(there);
    }
  }

  double mean(FleetTime from, FleetTime to) const {
    if (!(from < to)) return 1;
    return (sum_until(to) - sum_until(from)) / to_seconds(to - from).si();
  }

 private:
  double sum_until(FleetTime at) const {
    const auto next = std::upper_bound(times_.begin(), times_.end(), at);
    if (next == times_.begin()) return 0;
    const auto i = static_cast<std::size_t>(next - times_.begin()) - 1;
    return sums_[i] + static_cast<double>(there_[i]) * to_seconds(at - times_[i]).si();
  }
  std::vector<FleetTime> times_;
  std::vector<double> sums_;
  std::vector<std::int64_t> there_;  // after each time
};

}  // namespace

FleetFairness fleet_fairness(const ClusterJobs& jobs, const FleetRecord& record, double gpus,
                             const std::function<bool(const ClusterJob&)>& counts) {
  FleetFairness out;
  const JobsThere there(jobs, record, counts);
  double sum = 0, squares = 0;
  std::int64_t ended = 0, unfair = 0;
  for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
    const ClusterJob& job = jobs.jobs[i];
    const JobRecord& one = record.jobs[i];
    if (one.rejected || one.end > record.last_end || job.length.us == 0 || !counts(job)) continue;
    ++ended;
    const FleetTime from = eligible(job, one);
    const double completion = to_seconds(one.end - from).si();
    const double length = to_seconds(job.length).si();
    const double x = std::min(1.0, length / completion);
    sum += x;
    squares += x * x;
    const double part = gpus / there.mean(from, one.end);
    const double fair = length * std::max(1.0, gpus_asked(job) / part);
    out.finish_time_worst = std::max(out.finish_time_worst, completion / fair);
    // What the microsecond of a clock rounds is no unfairness.
    if (completion > fair * (1 + 1e-9) + 1e-6) ++unfair;
  }
  if (ended == 0) return out;
  out.jain = sum * sum / (static_cast<double>(ended) * squares);
  out.unfair_share = static_cast<double>(unfair) / static_cast<double>(ended);
  return out;
}

}  // namespace orrery
