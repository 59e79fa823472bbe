// SPDX-License-Identifier: Apache-2.0
// Knows how fast each job comes on so many accelerators, at the batch that suits it best there.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "workloads/cluster_job/elastic_job.h"

namespace orrery {

struct JobPace {
  std::int64_t batch = 0;  // 0: it cannot run on so many
  std::int64_t step_ps = 1;
  std::int64_t worth = 0;  // of elastic_work, that a step does
  double rate() const { return static_cast<double>(worth) / static_cast<double>(step_ps); }
};

class PaceTable {
 public:
  // `applications` must outlive it.
  explicit PaceTable(const std::vector<ElasticApplication>& applications)
      : applications_(applications) {}
  // On so many GPUs of one host or of several; the smallest of equally good batches.
  const JobPace& pace(const ElasticJob& job, std::int32_t gpus, bool several_hosts);
  // Time to the end of what is `left` of elastic_work, in picoseconds.
  static double time_left_ps(const JobPace& pace, std::int64_t left) {
    return static_cast<double>(left) / pace.rate();
  }

 private:
  JobPace best(const ElasticJob& job, std::int32_t gpus, bool several_hosts) const;
  const std::vector<ElasticApplication>& applications_;
  std::unordered_map<std::uint64_t, JobPace> known_;
};

}  // namespace orrery
