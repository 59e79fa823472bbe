// SPDX-License-Identifier: Apache-2.0
// Answers what becomes of a list of jobs on one cluster, by each of several policies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/cluster.h"
#include "sim/outcome/fleet/fleet_measures.h"

namespace orrery {

// A policy by its short name: order and fit at once.
struct NamedPolicy {
  const char* name;  // "easy"
  JobOrder order;
  JobFit fit;
};
const std::vector<NamedPolicy>& named_policies();

// As it was asked, in words; empty ones have their defaults.
struct ScheduleWords {
  std::string cluster, gpus, trace, policies = "fifo", places = "pack", days, job;
};

struct SchedulePoint {
  std::string policy, place;
  FleetRecord record;
  FleetMeasures measures;
};

struct Scheduled {
  std::string cluster;  // its title
  SlotShape shape;
  ClusterJobs jobs;
  std::vector<SchedulePoint> points;
  std::size_t best = 0;                // by mean completion
  std::optional<std::size_t> watched;  // place of the job whose wait is told
  bool stopped = false;                // Ctrl-C ended it: some jobs did not come to their end
};

// Errors: names that are not known (with the nearest), a cluster of no accelerators, no job of the
// days, a job that the list does not have; CannotExist where no job fits the cluster.
Scheduled schedule_jobs(const ScheduleWords& words, std::uint64_t seed, int threads);

}  // namespace orrery
