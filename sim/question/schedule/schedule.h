// SPDX-License-Identifier: Apache-2.0
// Answers what becomes of the jobs of one cluster, by each of several policies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/cluster.h"
#include "sim/outcome/fleet/fleet_measures.h"
#include "sim/question/schedule/fleet_jobs.h"
#include "sim/question/schedule/settings.h"

namespace orrery {

// A policy by its short name: order, fit and preemption at once.
struct NamedPolicy {
  const char* name;  // "easy"
  JobOrder order;
  JobFit fit;
  bool preempts = false;
};
const std::vector<NamedPolicy>& named_policies();

struct ScheduleWith {
  Catalogues& catalogues;
  std::optional<std::uint64_t> seed = {};  // of the first run
  int threads = 0;                         // 0: all cores
};

struct SchedulePoint {
  std::string policy, place;
  FleetRecord record;                   // of the first seed
  std::vector<FleetMeasures> measures;  // of each seed that came to its end
};

// A mean over seeds, with the ends of its 90% interval (Student's t).
struct SeedMean {
  double mean = 0, low = 0, high = 0;
};
SeedMean mean_over_seeds(const std::vector<double>& values);

// How much more a point has than the best one, seed by seed.
struct PointDifference {
  std::size_t point = 0;
  SeedMean completion_s, wait_s, useful;
};

struct Scheduled {
  JsonValue settings;
  std::string cluster;  // its title
  SlotShape shape;
  ClusterJobs jobs;  // of the first seed
  FleetJobs asked;
  BreakdownPlan breakdowns;
  std::string reliability;  // title of the profile; empty: nothing fails
  std::optional<FleetTime> horizon;
  std::vector<SchedulePoint> points;
  std::size_t best = 0;                      // by mean completion, over the seeds
  std::vector<PointDifference> differences;  // of several seeds: the other points
  std::optional<std::size_t> watched;        // place of the job whose wait is told
  std::uint64_t seed = 0;
  std::int64_t seeds = 1;
  bool draws = false;     // the seed counts
  bool stopped = false;   // Ctrl-C ended it: some jobs did not come to their end
  std::string catalogue;  // its hash
};

// Errors: names that are not known (with the nearest), a cluster of no accelerators, no job of the
// days, a job that the list does not have, seeds where nothing is drawn; CannotExist where no job
// fits the cluster.
Scheduled schedule_jobs(const JsonValue& settings, const ScheduleWith& with);

}  // namespace orrery
