// SPDX-License-Identifier: Apache-2.0
// Counts submissions by hours of a cluster's clock.
#include "workloads/cluster_job/job_clock.h"

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

std::int64_t floored(std::int64_t dividend, std::int64_t divisor) {
  return dividend / divisor - (dividend % divisor < 0 ? 1 : 0);
}

std::int64_t began_us(const ClusterJobs& list) {
  return list.began ? list.began->us : first_monday_us;
}

// The hours of the first and the last submission.
std::pair<std::int64_t, std::int64_t> hours_of(const ClusterJobs& list) {
  CHECK_THAT(!list.jobs.empty(), "hours are of jobs");
  const std::int64_t began = began_us(list);
  return {floored(began, hour_us), floored(began + list.jobs.back().submit.us, hour_us)};
}

}  // namespace

std::size_t JobsByHour::hour_of_day(std::size_t hour) const {
  const std::int64_t at = first + static_cast<std::int64_t>(hour);
  return static_cast<std::size_t>(at - floored(at, day_hours) * day_hours);
}

std::size_t JobsByHour::weekday(std::size_t hour) const {
  const std::int64_t at = first + static_cast<std::int64_t>(hour) - first_monday_us / hour_us;
  const std::int64_t day = floored(at, day_hours);
  return static_cast<std::size_t>(day - floored(day, week_days) * week_days);
}

JobsByHour jobs_by_hour(const ClusterJobs& list) {
  const auto [first, last] = hours_of(list);
  JobsByHour counted{.first = first, .jobs = {}};
  counted.jobs.resize(static_cast<std::size_t>(last - first) + 1);
  for (const ClusterJob& job : list.jobs)
    ++counted
          .jobs[static_cast<std::size_t>(floored(began_us(list) + job.submit.us, hour_us) - first)];
  return counted;
}

double jobs_per_day_of(const ClusterJobs& list) {
  const auto [first, last] = hours_of(list);
  return static_cast<double>(list.jobs.size()) * static_cast<double>(day_hours) /
         static_cast<double>(last - first + 1);
}

}  // namespace orrery
