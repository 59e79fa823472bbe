// SPDX-License-Identifier: Apache-2.0
// Predicts how long engines take to generate the responses of an RL step.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/outcome/rl/rl_job.h"

namespace orrery {

struct Rollout {
  Seconds time;      // of one step's responses, the last one included
  Seconds half;      // until half of the tokens were there
  double batch = 0;  // mean sequences of an engine that get a token in a step
  Bytes weights;     // of the model on one GPU
  std::int64_t engines = 0;
};

// All responses are asked for at once, spread evenly over the engines. Of a job k steps off, k
// steps' responses are under way together and take a k-th of their time each. Error: the engines
// cannot hold the model or a response.
Rollout predict_rollout(const RlJob& job, const std::vector<std::int64_t>& responses, int threads);

// What validation adds to a step in the mean: its batches one after the other, with responses of
// the same lengths.
Seconds predict_validation(const RlJob& job, int threads);

}  // namespace orrery
