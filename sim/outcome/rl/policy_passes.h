// SPDX-License-Identifier: Apache-2.0
// Predicts how long a policy takes over the responses of an RL step: probabilities and updates.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/outcome/rl/rl_job.h"
#include "workloads/rl/packing.h"

namespace orrery {

struct PolicyPasses {
  Seconds logprobs;          // of the policy, and of the reference model where there is one
  Seconds training;          // all optimizer steps
  std::int64_t updates = 0;  // optimizer steps
  PackedBatch update;        // of one of them, the first
  PackedBatch logprob;
  Bytes optimizer, parameters, gradients;  // on the GPU that has most
};

// `responses` without their prompts. Time is that of the step model on the training GPUs.
PolicyPasses predict_passes(const RlJob& job, const std::vector<std::int64_t>& responses);

}  // namespace orrery
