// SPDX-License-Identifier: Apache-2.0
// Knows hours, days and weeks of a list of jobs by the clock of its cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

inline constexpr std::int64_t hour_us = INT64_C(3'600'000'000), day_hours = 24,
                              day_us = day_hours * hour_us, week_days = 7;
// 1970-01-01 is a Thursday.
inline constexpr std::int64_t first_monday_us = 4 * day_us;

// How many jobs were submitted in each hour from that of the first to that of the last.
struct JobsByHour {
  std::int64_t first = 0;  // since 1970-01-01; a list without a clock begins on a Monday at 0:00
  std::vector<double> jobs;
  std::size_t hour_of_day(std::size_t hour) const;
  std::size_t weekday(std::size_t hour) const;  // Monday: 0
};
JobsByHour jobs_by_hour(const ClusterJobs& list);

// Over the hours that jobs_by_hour() has.
double jobs_per_day_of(const ClusterJobs& list);

}  // namespace orrery
