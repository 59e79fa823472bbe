// SPDX-License-Identifier: Apache-2.0
// Reads jobs of RL post-training: what a step takes, alone or in turns, and how many there are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw_models/reliability.h"
#include "sim/base/json/json.h"
#include "sim/engine/jobs/job_work.h"
#include "sim/outcome/rl/rl_error.h"
#include "sim/outcome/rl/rl_step.h"
#include "sim/outcome/rl/shared_pools.h"
#include "sim/question/settings/catalogues.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// A job of an entry, as it is alone.
struct RlMember {
  std::string id, model;
  RlStep step;
  RlRange range;
  PoolTurn turn = {};
};

// Pools on which jobs of an entry take turns.
struct EntryPools {
  std::int64_t rollout_gpus = 0, training_gpus = 0;
  SharedPools shared;
  PoolOrder best;  // of their turns
  PoolHosts hosts;
  RlRange range;  // of the period: the widest of all jobs
};

struct PostTraining {
  std::string id;
  std::vector<RlMember> members;    // at least one
  std::optional<EntryPools> pools;  // of several
  Seconds save_interval;            // 0: nothing is saved
  JobWork work;
  ClusterJob job;

  // What is repeated: a step, or one of each member.
  Seconds step() const { return pools ? pools->shared.period : members.front().step.step; }
};

struct PostTrainingCase {
  const SortedJson& cluster;                         // as settings name it
  const std::optional<ReliabilityProfile>& profile;  // none: nothing fails
  Seconds save_interval;
  std::int64_t milliwatts = 0;  // of an accelerator that it holds
  Catalogues& catalogues;
  int threads = 0;
};

// Keys: id, rl (settings of read_rl_job but for the cluster; or a list of them, each with an id,
// that take turns on the same GPUs), steps or length ("3 day"), perhaps submit and save_interval.
// Its step is that of its GPUs side by side, wherever it is placed. Errors: of settings, a cluster
// of its own, jobs that cannot take turns.
PostTraining read_post_training(const JsonValue& entry, const PostTrainingCase& with);

}  // namespace orrery
