// SPDX-License-Identifier: Apache-2.0
// Decides as Slurm's two loops do: the main loop, and the one that backfills.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/engine/slurm/slurm_plan.h"
#include "topologies/slots.h"

namespace orrery {

// Of SchedulerParameters, with the defaults of Slurm 22.05 (its manual, sched_config). Seconds.
struct SlurmSettings {
  std::int64_t interval = 30;    // bf_interval
  std::int64_t resolution = 60;  // bf_resolution
  std::int64_t window = 86'400;  // bf_window: a day
  std::int64_t sched_interval = 60;
  std::int64_t batch_delay = 3;   // batch_sched_delay
  std::size_t depth = 100;        // default_queue_depth
  std::size_t most_tested = 500;  // bf_max_job_test
};

// sched/backfill, priority/basic (first come, first served), select/cons_tres, topology/tree with a
// leaf switch for each leaf group, one partition. The rules are those that tests/slurm tells and
// holds against recordings of a real one. Jobs of more GPUs than a host has take whole hosts, and
// what is left of them a part of one more.
class SlurmPasses {
 public:
  SlurmPasses(const SlotShape& shape, const SlurmSettings& settings);
  struct Start {
    std::uint32_t job = 0;
    std::vector<std::int32_t> hosts;        // taken whole, ascending
    std::optional<std::int32_t> rest_host;  // of which a part is taken
  };
  // `limit`: seconds; rounded up to whole minutes, as Slurm does.
  void submit(std::uint32_t job, std::int32_t gpus, std::int64_t limit);
  void release(std::uint32_t job);  // one that runs ended
  std::size_t waiting() const { return queue_.size(); }
  // Passes that begin in this second. What starts runs from then on.
  std::vector<Start> main_pass(std::int64_t now, bool whole_queue);
  std::vector<Start> backfill_pass(std::int64_t now);

 private:
  struct Job {
    std::int32_t hosts = 0, rest = 0;  // whole ones, GPUs of one more
    std::int64_t limit = 0, ends = 0;
    std::vector<std::int32_t> on;  // hosts, of one that runs
    std::optional<std::int32_t> rest_on;
  };
  using Free = std::vector<std::int32_t>;
  // Where a job goes; nullopt: nowhere.
  std::optional<Start> place(std::uint32_t number, const Free& free, const HostFlags* barred) const;
  bool take_hosts(const Free& free, const HostFlags* barred, std::int32_t of_host,
                  std::int32_t count, std::vector<std::int32_t>& taken) const;
  struct Expected {
    std::int64_t at = 0;
    Start start;
  };
  std::optional<Expected> expect(std::uint32_t number, std::int64_t now,
                                 const HostFlags& barred) const;
  bool is_barred(const Job& job, const HostFlags& barred) const;
  void begin(const Start& start, std::int64_t now);
  void give(const Job& job, Free& free) const;
  static bool ends_before(const Job* a, const Job* b) { return a->ends < b->ends; }

  SlotShape shape_;
  SlurmSettings settings_;
  std::int32_t leaf_;  // hosts of a leaf group
  Free free_;
  std::map<std::uint32_t, Job> jobs_;
  std::set<std::uint32_t> queue_;    // in order of submission
  std::vector<const Job*> running_;  // by the ends of their limits, of equals by their starts
};

}  // namespace orrery
