// SPDX-License-Identifier: Apache-2.0
// Holds a shared cluster at one instant: what is free, who runs, who waits.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fleet/fleet_record.h"
#include "sim/engine/fleet/policy.h"
#include "sim/engine/fleet/running_ends.h"
#include "sim/engine/fleet/waiting_list.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

class FleetState {
 public:
  FleetState(const std::vector<ClusterJob>& jobs, const SlotShape& shape, JobPlace place,
             std::uint64_t seed);

  const Slots& slots() const { return slots_; }
  bool is_pool() const { return pool_; }  // only the number of accelerators counts
  WaitingList& waiting() { return waiting_; }
  const WaitingList& waiting() const { return waiting_; }
  FleetTime next_end() const { return ends_.empty() ? fleet_never : ends_.first().at; }
  // Running jobs by the ends that the scheduler expects: their limits.
  const RunningEnds& promised() const { return exact_ ? ends_ : limits_; }
  const Grants& grants_of(std::uint32_t job) const { return grants_[job]; }

  // A place for a job that waits, by the rule; false: there is none now.
  bool find(std::uint32_t job, Grants& out);
  // Starts a job that is no longer in the list, and takes `grants` away.
  void start(std::uint32_t job, FleetTime now, Grants& grants);
  // Ends all jobs whose time has come; whether one ended before its limit.
  bool end_jobs(FleetTime now);

  std::vector<JobRecord> records;  // of all jobs

 private:
  void count_groups(const Grants& grants, JobRecord& record) const;

  const std::vector<ClusterJob>& jobs_;
  Slots slots_;
  Placer placer_;
  bool pool_, exact_;
  RunningEnds ends_, limits_;  // by their lengths; by their limits, where those differ
  WaitingList waiting_;
  std::vector<Grants> grants_;  // of jobs that run; none in a pool
};

}  // namespace orrery
