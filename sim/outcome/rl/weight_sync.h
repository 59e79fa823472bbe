// SPDX-License-Identifier: Apache-2.0
// Predicts how long new weights take from the trained layout to the engines.
#pragma once

#include <algorithm>

#include "sim/outcome/rl/rl_job.h"

namespace orrery {

struct WeightSync {
  Seconds gather;   // of whole weights to every rank that trains
  Seconds send;     // to engines on other GPUs; 0 on shared ones
  Seconds program;  // what the program takes for as many bytes
  Bytes weights;    // of the whole model, as they are sent
  // Gather and sends overlap, and both with what the program does.
  Seconds time() const { return std::max({gather, send, program}); }
};

// Weights go in 16 bits, tensor by tensor: each is broadcast from its pipeline stage to the others,
// then gathered over tensor or expert ranks. Engines on other GPUs get it by a broadcast over all.
WeightSync predict_weight_sync(const RlJob& job);

}  // namespace orrery
