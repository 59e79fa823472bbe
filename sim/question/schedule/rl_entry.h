// SPDX-License-Identifier: Apache-2.0
// Reads a job of RL post-training: what its step takes, and how many there are.
#pragma once

#include <optional>
#include <string>

#include "hw_models/reliability.h"
#include "sim/base/json/json.h"
#include "sim/engine/jobs/job_work.h"
#include "sim/outcome/rl/rl_error.h"
#include "sim/outcome/rl/rl_step.h"
#include "sim/question/settings/catalogues.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

struct PostTraining {
  std::string id, model;
  RlStep step;
  RlRange range;          // of the step
  Seconds save_interval;  // 0: nothing is saved
  JobWork work;
  ClusterJob job;
};

struct PostTrainingCase {
  const SortedJson& cluster;                         // as settings name it
  const std::optional<ReliabilityProfile>& profile;  // none: nothing fails
  Seconds save_interval;
  std::int64_t milliwatts = 0;  // of an accelerator that it holds
  Catalogues& catalogues;
  int threads = 0;
};

// Keys: id, rl (settings of read_rl_job but for the cluster), steps or length ("3 day"), perhaps
// submit and save_interval. Its step is that of its GPUs side by side, wherever it is placed.
// Errors: of settings, a cluster of its own.
PostTraining read_post_training(const JsonValue& entry, const PostTrainingCase& with);

}  // namespace orrery
