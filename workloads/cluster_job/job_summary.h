// SPDX-License-Identifier: Apache-2.0
// Makes a mix of jobs of what a summary says: means, medians, largest values and shares.
#pragma once

#include <string>

#include "workloads/cluster_job/job_mix.h"

namespace orrery {

struct SpreadFigures {
  double mean = 0, median = 0, largest = 0;
};

struct JobSummary {
  std::string name;
  double jobs_per_day = 0;
  SpreadFigures length_s, gpus;  // of the jobs
  // Share of the jobs that ask for the median number of GPUs or fewer, 0.5 to 1. With a little over
  // half of them the median is what it says in draws too.
  double up_to_median = 0.6;
  double gpu_seconds = 0;       // length times GPUs in the mean; 0: not known
  FateShares jobs = {1, 0, 0};  // shares by fate, of the sum
  FateShares gpu_time{};        // likewise; all 0: not known
};

// Lengths whose logarithm is normal up to the largest one and that have this mean and median: the
// form of heavy tails with these three figures. They reach four deviations down. Error, at `file`
// and `path`: figures that are not in order above 0, or a mean that no such lengths have.
QuantileTable lognormal_lengths(const SpreadFigures& seconds, const std::string& file,
                                const std::string& path);

// Sizes are the median times powers of two (whole ones from 1 on), and the largest; above the
// median their shares fall by one factor from each to the next, which the mean gives. Lengths are
// lognormal up to the largest, of one deviation; their median grows as a power of the GPUs, which
// the GPU-time gives (without it lengths do not depend on sizes). How likely a job fails or is
// cancelled changes as a power of its GPU-time, which gives each fate its share of jobs and of
// GPU-time (without that: the same for all jobs). So mean, median and largest value of lengths and
// sizes, GPU-time and both shares of fates are those of the summary. Arrivals are even. Error, at
// the name: figures out of order, or that this form cannot have together.
JobMix job_mix_of(const JobSummary& summary);

}  // namespace orrery
