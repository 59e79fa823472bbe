// SPDX-License-Identifier: Apache-2.0
// Knows how fast each job comes on so many accelerators.
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

class JobPaces {
 public:
  virtual ~JobPaces() = default;
  // On so many GPUs of one host or of several.
  virtual JobPace pace(const ElasticJob& job, std::int32_t gpus, bool several_hosts) = 0;
  // On an equal share of a cluster, which may be no size that the job can have.
  virtual double share_rate(const ElasticJob& job, std::int32_t gpus) = 0;
  // Time to the end of what is `left` of elastic_work, in picoseconds.
  static double time_left_ps(const JobPace& pace, std::int64_t left) {
    return static_cast<double>(left) / pace.rate();
  }
};

// At the batch that suits a job best.
class PaceTable final : public JobPaces {
 public:
  // `applications` must outlive it.
  explicit PaceTable(const std::vector<ElasticApplication>& applications)
      : applications_(applications) {}
  // The smallest of equally good batches.
  JobPace pace(const ElasticJob& job, std::int32_t gpus, bool several_hosts) override;
  // On one host, as in the published simulator of Pollux (goodput_sizes.h).
  double share_rate(const ElasticJob& job, std::int32_t gpus) override {
    return pace(job, gpus, false).rate();
  }

 private:
  JobPace best(const ElasticJob& job, std::int32_t gpus, bool several_hosts) const;
  const std::vector<ElasticApplication>& applications_;
  std::unordered_map<std::uint64_t, JobPace> known_;
};

}  // namespace orrery
