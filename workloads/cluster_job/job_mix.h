// SPDX-License-Identifier: Apache-2.0
// Knows what the jobs of a cluster are like on the whole, and how a list of jobs is drawn from it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/units/fleet_time.h"
#include "workloads/cluster_job/cluster_job.h"
#include "workloads/cluster_job/quantile_table.h"

namespace orrery {

inline constexpr std::int64_t most_drawn_jobs = 100'000'000;
inline constexpr int job_fates = decltype(job_fate_text)::count;
using FateShares = std::array<double, job_fates>;  // by JobFate

// Shares of the following types are of the sum of those beside them.

// When jobs are submitted, by the clock of the cluster. An hour's jobs are its share of its day, a
// day's its weekday's, each times a factor that is drawn for it (mean 1; empty: 1). Within an hour
// they are a Poisson process.
struct JobArrivals {
  double jobs_per_day = 0;
  std::array<double, 24> by_hour{};    // shares of a day
  std::array<double, 7> by_weekday{};  // shares of a week, Monday first
  QuantileTable day_swing, hour_swing;
  JobArrivals() {
    by_hour.fill(1);
    by_weekday.fill(1);
  }
  friend bool operator==(const JobArrivals&, const JobArrivals&) = default;
};

struct SizeShare {
  double gpus = 1;  // above 0; below 1 where jobs ask for a part of one
  double share = 1;
  friend bool operator==(const SizeShare&, const SizeShare&) = default;
};

// Jobs of similar sizes that end alike.
struct JobMixPart {
  double share = 1;  // of the jobs
  JobFate fate = JobFate::completed;
  std::vector<SizeShare> sizes = {SizeShare{}};
  QuantileTable length_s = QuantileTable::constant(0);
  std::vector<double> queues = {};  // shares, of JobMix::queues; empty: the first one has all
  friend bool operator==(const JobMixPart&, const JobMixPart&) = default;
};

// What the scheduler is told of jobs of at most so long, as a factor of 1 or more on their length.
struct JobLimits {
  double up_to_s = std::numeric_limits<double>::infinity();
  QuantileTable factor = QuantileTable::constant(1);
  friend bool operator==(const JobLimits&, const JobLimits&) = default;
};

struct JobMix {
  std::string name;   // as it was asked for
  std::string title;  // a line for people; may be empty
  JobArrivals arrivals;
  std::vector<JobMixPart> parts;
  std::vector<std::string> queues = {"default"};
  std::vector<double> users;       // shares; empty: not known. They are independent of all else
  std::vector<JobLimits> limits;   // by length, the last without end; empty: lengths are the limits
  std::vector<std::string> notes;  // what was assumed
};

double least_size(const JobMix& mix);  // GPUs of its smallest jobs

// Means, medians and shares of jobs; GPUs as they are asked for.
struct JobFigures {
  double jobs_per_day = 0;
  double mean_s = 0, median_s = 0, p99_s = 0, largest_s = 0;  // lengths
  double mean_gpus = 0, median_gpus = 0, largest_gpus = 0;
  double one_gpu = 0;             // share of the jobs that ask for one or a part of it
  double gpu_seconds = 0;         // length times GPUs of a job, in the mean
  FateShares jobs{}, gpu_time{};  // shares, of the sum
};
JobFigures figures_of(const JobMix& mix);  // of an endless draw
// Error: no jobs.
JobFigures figures_of(const ClusterJobs& list);

// Jobs of `span` from a Monday at 0:00 on: `jobs_per_day` for each day, rounded to whole jobs. So
// many are drawn; a day's swing moves jobs to other days. The same bytes for the same arguments on
// every machine. The n-th job's size, length, fate, queue, user and limit depend on mix, seed and n
// alone: another rate or span has the same jobs at other times. A part of a GPU is one to
// a thousandth. Error: a span or a rate that is not above 0, a span above most_fleet_time,
// fewer jobs than one or more than most_drawn_jobs.
ClusterJobs draw_jobs(const JobMix& mix, FleetTime span, double jobs_per_day, std::uint64_t seed);

}  // namespace orrery
