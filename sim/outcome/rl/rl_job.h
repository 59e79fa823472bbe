// SPDX-License-Identifier: Apache-2.0
// Describes a job of RL post-training (GRPO and kin): what is generated, where, and what trains.
#pragma once

#include <cstdint>

#include "sim/engine/cluster.h"
#include "workloads/inference/engine_layout.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/rl/response_lengths.h"
#include "workloads/rl/rl_program.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Engines that generate, each with the same layout.
struct RlGeneration {
  std::int64_t gpus = 0;  // of their own; 0: they take turns with training on all GPUs
  EngineLayout layout;
  Stack stack;
  double memory_share = 0.9;  // of a device, that an engine takes
};

// The policy that is trained: probabilities of the tokens, then updates.
struct RlTraining {
  Layout layout;
  Stack stack;
  bool packed = true;             // sequences share microbatches; else each is padded
  std::int64_t logprob_fill = 1;  // a microbatch of probabilities has so many times the context
  bool reference = true;          // a reference model's probabilities too, for a KL penalty
  std::int64_t update_batch = 0;  // responses of an optimizer step
};

// Prompts that are answered every so many steps to judge the policy, some at a time, while nothing
// else runs; period 0: never.
struct RlValidation {
  std::int64_t period = 0, prompts = 0, together = 1;
  // As many whole batches as the prompts fill: programs leave the rest out.
  std::int64_t batches() const { return period > 0 ? prompts / together : 0; }
};

struct RlJob {
  Cluster cluster;  // all GPUs
  Model model;
  RlProgram program;
  ResponseLengths lengths;
  std::int64_t responses = 0;  // of a step
  // How many steps training may be behind generation; above 0 both run at once, on GPUs of their
  // own. 0: generation waits for the weights of the step before.
  std::int64_t steps_off = 0;
  RlGeneration generation;
  RlTraining training;
  RlValidation validation;
  std::uint64_t seed = 1;

  bool split() const { return generation.gpus > 0; }
  std::int64_t generation_gpus() const { return split() ? generation.gpus : cluster.gpus; }
  std::int64_t training_gpus() const { return cluster.gpus - generation.gpus; }
};

// Error for a job that cannot be: GPUs that engines or layouts do not divide, batches without
// responses, steps off without GPUs of their own, a layout that the model does not allow.
void check_rl_job(const RlJob& job);

}  // namespace orrery
