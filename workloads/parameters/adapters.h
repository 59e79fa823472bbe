// SPDX-License-Identifier: Apache-2.0
// Knows which linear layers LoRA gives adapters, what these hold and how many a layer has.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/layout/job.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/stack/stack.h"

namespace orrery {

// A linear layer with an adapter: W x + B (A x) with A of r x inputs and B of outputs x r. Sizes
// are those of the whole model. Queries, keys and values are one linear layer, gate and up another,
// as Megatron has them.
struct AdaptedLinear {
  std::int64_t inputs = 0, outputs = 0;
  bool split = true;  // A or B over tp ranks, as the layer itself is
};
std::vector<AdaptedLinear> adapted_linears(const Model& model, const LayerClass& layer,
                                           AdapterSites sites);

// Elements of a layer's adapters on one rank, r x the sum of (inputs + outputs); 0 for other tasks
// than LoRA. They are all that the job trains.
double adapter_parameters(const Model& model, const LayerClass& layer, const Job& job,
                          const Layout& layout, const Stack& stack);

// Bytes that a layer's adapters keep for backward: A x of each, r wide.
double adapter_activations(const Model& model, const LayerClass& layer, const Job& job,
                           const Layout& layout, const Stack& stack);

// The smallest width of the model's linear layers: an adapter of a higher rank would hold more than
// the layer that it changes.
std::int64_t largest_adapter_rank(const Model& model);

}  // namespace orrery
