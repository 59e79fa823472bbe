// SPDX-License-Identifier: Apache-2.0
// Knows how likely jobs fail or are cancelled, by their GPU-time.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "workloads/cluster_job/job_mix.h"

namespace orrery {

// Some of the jobs and their GPU-time.
struct TiltedPiece {
  double share = 0, gpu_seconds = 0;
};

// The likeliest fate has a weight of 1, each other one a power of the GPU-time.
class FateTilt {
 public:
  // Fates have these shares of jobs and, unless all of them are 0, of GPU-time. Both are of their
  // sums. Error, with the name: shares that are not 0 or more, or that no powers give.
  FateTilt(const std::vector<TiltedPiece>& pieces, FateShares jobs, FateShares gpu_time,
           const std::string& name);

  bool never(JobFate fate) const { return !ends_so_[static_cast<std::size_t>(fate)]; }
  double share(JobFate fate, double gpu_seconds) const;

 private:
  FateShares shares(double ln_time) const;
  void solve(const std::vector<TiltedPiece>& pieces, const FateShares& jobs,
             const FateShares& gpu_time, const std::string& name);

  std::array<bool, job_fates> ends_so_{};
  FateShares weight_{}, power_{};  // of ln, at the mean GPU-time
  double ln_mean_ = 0;
};

}  // namespace orrery
