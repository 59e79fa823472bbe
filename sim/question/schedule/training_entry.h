// SPDX-License-Identifier: Apache-2.0
// Reads a job that trains a model: its scenario, its steps, what its months are like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/reliability.h"
#include "sim/base/json/json.h"
#include "sim/engine/jobs/job_work.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/months/job.h"
#include "sim/question/losses/store_entry.h"
#include "sim/question/settings/catalogues.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

struct FleetTraining {
  std::string id;
  Scenario scenario;      // alone on so many accelerators
  bool searched = false;  // its layout is the best that was found
  std::int64_t step_ps = 0;
  double slower = 1;      // steps over those of the step model: slow hosts, data, evaluation
  Seconds save_interval;  // 0: nothing is saved
  std::optional<GoodputJob> months = {};  // where a profile says what they are like
  JobWork work;
  ClusterJob job;
  // All of it on each other number of accelerators that it may have.
  std::vector<FleetTraining> sizes = {};
};

// What all trainings share.
struct TrainingCase {
  const SortedJson& cluster;                         // as settings name the machine
  const std::optional<ReliabilityProfile>& profile;  // without it nothing is saved
  const std::optional<StoreRates>& store;
  Seconds save_interval;  // without a profile, of those that say none
  Catalogues& catalogues;
  int threads = 0;
};

// Keys: id, submit ("2 day"), one of tokens, steps and length ("30 day"), perhaps limit,
// save_interval and sizes; all others are settings of simulate. `sizes`: accelerators that rules
// which size may give it, a list or a range, `gpus` among them; with noise_scale (tokens) its batch
// goes with its size. Without a layout among them the
// best one is searched. `gpus` may be a part of one, with that part of its memory. Errors: of
// settings, a job that fits no memory or does not run.
FleetTraining read_training(const JsonValue& entry, const TrainingCase& with);

// Lets saves of trainings take longer on a store that they share, as if all ran at once. Errors: a
// given interval that is shorter than a save takes then.
void share_saves(std::vector<FleetTraining>& trainings, const ReliabilityProfile& profile,
                 const StoreRates& store);

}  // namespace orrery
