// SPDX-License-Identifier: Apache-2.0
// Predicts a step of RL post-training from its phases.
#pragma once

#include "sim/outcome/rl/policy_passes.h"
#include "sim/outcome/rl/rl_job.h"
#include "sim/outcome/rl/rollout.h"
#include "sim/outcome/rl/weight_sync.h"

namespace orrery {

struct RlStep {
  Rollout rollout;
  PolicyPasses passes;
  WeightSync sync;
  // States that leave GPUs for their hosts and come back: the optimizer's while probabilities are
  // computed; on shared GPUs the policy's while engines generate, and theirs while it trains.
  Seconds handover;
  Seconds validation;  // its share of a step
  Seconds host;        // rewards, batches and buffers
  Seconds trains;      // host, probabilities, updates and handover
  Seconds step;
  double tokens = 0;                  // prompts and responses
  double tokens_per_gpu = 0;          // a second
  bool waits_for_generation = false;  // of two that run at once, which the other waits for
};

// On shared GPUs, and where training is no step off, phases follow each other:
//   step = sync + rollout + trains + validation
// Else training of one step's responses runs beside generation of the next, which validation does
// not stop: what was asked for goes on.
//   step = sync + max(rollout, trains + validation)
// Where the program does not place ranks by scale-up domain, hosts reach each other by the network.
RlStep predict_rl_step(const RlJob& job, int threads = 1);

}  // namespace orrery
