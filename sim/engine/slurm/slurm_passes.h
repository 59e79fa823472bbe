// SPDX-License-Identifier: Apache-2.0
// Decides as Slurm's two loops do: the main loop, and the one that backfills.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/slurm/multifactor.h"
#include "sim/engine/slurm/slurm_future.h"
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
  MultifactorSettings multifactor = {};
  bool blocks = false;  // topology/block: the innermost groups of hosts in place of leaves
};

// sched/backfill, priorities as they are told (of equals the oldest first), select/cons_tres,
// topology/tree with a leaf switch for each leaf group, one partition. The rules are those that
// tests/slurm tells and holds against recordings of a real one. Jobs of more GPUs than a host has
// take whole hosts, and what is left of them a part of one more. A job that is not over at its
// limit is taken to end in a second.
class SlurmPasses {
 public:
  SlurmPasses(const SlotShape& shape, const SlurmSettings& settings);
  struct Start {
    std::uint32_t job = 0;
    std::vector<std::int32_t> hosts;        // taken whole, ascending
    std::optional<std::int32_t> rest_host;  // of which a part is taken
  };
  // `limit`: seconds; rounded up to whole minutes, as Slurm does, and at least one.
  void submit(std::uint32_t job, std::int32_t gpus, std::int64_t limit, std::int64_t priority = 0);
  // priority_of(job), for all that wait.
  template <class Priority>
  void set_priorities(const Priority& priority_of) {
    for (Waiting& job : queue_) job.priority = priority_of(job.job);
    std::sort(queue_.begin(), queue_.end(), is_before);
  }
  void release(std::uint32_t job) { future_.release(job); }  // one that runs ended, or was stopped
  // From now on nothing starts or is planned on a host, or it is in use again.
  void set_out(std::int32_t host, bool out) {
    if (out)
      add_host(out_, host);
    else
      remove_host(out_, host);
  }
  std::size_t waiting() const { return queue_.size(); }
  // Passes that begin in this second. What starts runs from then on.
  std::vector<Start> main_pass(std::int64_t now, bool whole_queue);
  std::vector<Start> backfill_pass(std::int64_t now);

 private:
  struct Waiting {
    std::uint32_t job = 0;
    SlurmGang gang;
    std::int64_t limit = 0;
    std::int64_t priority = 0;
  };
  static bool is_before(const Waiting& a, const Waiting& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.job < b.job;
  }
  struct Pass {
    std::int64_t now = 0;
    SlurmPlan plan;
  };
  Start begin(const Waiting& job, SlurmPlace place, std::int64_t now);
  std::optional<SlurmPlace> plan(Pass& pass, const Waiting& job);
  bool reserve(Pass& pass, const SlurmPlace& place, std::int64_t start, std::int64_t limit);

  SlurmSettings settings_;
  SlurmFuture future_;
  std::vector<Waiting> queue_;  // in order
  std::int32_t hosts_, gpus_per_host_;
  HostWords barred_, out_;
};

}  // namespace orrery
