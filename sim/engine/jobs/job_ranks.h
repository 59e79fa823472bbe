// SPDX-License-Identifier: Apache-2.0
// Knows which jobs come first on a shared cluster, and how much those of each priority hold.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "sim/engine/jobs/policy.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// Below all that jobs may have.
inline constexpr std::int32_t borrowed_priority = INT32_MIN;

class JobRanks {
 public:
  JobRanks(const std::vector<ClusterJob>& jobs, const FleetPolicy& policy);
  // That of its queue's loan, of its service (las: 1, then 0), or its own.
  std::int32_t priority_of(std::uint32_t job) const;
  // Beyond its queue's quota: any job that is not may stop it.
  void lend(std::uint32_t job) { borrowed_.insert(job); }
  bool is_lent(std::uint32_t job) const { return borrowed_.contains(job); }
  void forget_loan(std::uint32_t job) { borrowed_.erase(job); }
  void demote(std::uint32_t job) { demoted_[job] = 1; }
  bool is_demoted(std::uint32_t job) const { return demoted_[job] != 0; }
  bool by_service() const { return !demoted_.empty(); }
  // Accelerators that jobs of each priority hold; counted where jobs are stopped.
  const std::map<std::int32_t, std::int64_t>& held() const { return held_; }
  void count(std::uint32_t job, std::int32_t sign);

 private:
  const std::vector<ClusterJob>& jobs_;
  bool counts_;
  std::set<std::uint32_t> borrowed_;
  std::vector<std::uint8_t> demoted_;  // las
  std::map<std::int32_t, std::int64_t> held_;
};

}  // namespace orrery
