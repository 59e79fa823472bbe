// SPDX-License-Identifier: Apache-2.0
// Knows the operations that a model needs per token, by the convention behind MFU.
#pragma once

#include "workloads/layout/job.h"
#include "workloads/model/model.h"

namespace orrery {

// FLOP per token of a forward pass: two per active parameter except the embedding lookup, plus
// causal attention (half of the scores; windows taken into account), 2 (qk + v) per head and score.
double forward_flop_per_token(const Model& model, const Job& job);

// Training: three times the forward (no recompute, no optimizer); LoRA: two times (no weight
// gradients of frozen layers). Inference: the forward.
double model_flop_per_token(const Model& model, const Job& job);

}  // namespace orrery
