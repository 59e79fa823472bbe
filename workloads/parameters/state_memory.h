// SPDX-License-Identifier: Apache-2.0
// Knows the bytes of parameters, gradients and optimizer state on one rank, and what sharding adds.
#pragma once

#include "workloads/layout/job.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/stack/memory_traits.h"

namespace orrery {

// Parameters of one layer on one rank before ZeRO shards them.
struct LocalParameters {
  double dense = 0;           // split over tp, or replicated
  double expert = 0;          // split over ep x etp
  double products = 0;        // of `dense`, those of linear layers (quantised by the recipe)
  double one_expert = 0;      // of `expert`, those of a single expert
  double largest_weight = 0;  // of its largest linear layer, one expert's where it has experts
  double adapters = 0;        // LoRA: what the job trains, beside all of these
};
LocalParameters local_parameters(const Model& model, const LayerClass& layer, const Layout& layout);
// The same with the adapters of a training job.
LocalParameters local_parameters(const Model& model, const LayerClass& layer, const Job& job,
                                 const Layout& layout, const Stack& stack);
// What an MTP module has beside its layer and the shared tables: a projection of two hidden states
// to one, a norm of each and one before the head.
LocalParameters module_parameters(const Model& model, const Layout& layout);

// MTP modules that the job trains.
inline std::int64_t trained_modules(const Model& model, const Job& job) {
  return job.mtp && is_training(job.task) ? model.mtp_layers : 0;
}
// Whether full recompute runs modules again: Megatron-Core does so by the uniform method, and warns
// that a number of layers (block) leaves them out (core/transformer/multi_token_prediction.py).
inline bool recomputes_modules(const Layout& layout) {
  return layout.recompute == Recompute::full && layout.recompute_layers == 0;
}

// What lies on one stage.
struct StageParameters {
  double dense = 0, expert = 0, products = 0;
  double vocabulary = 0;      // embedding, head, position table: part of `dense`, never quantised
  double largest_layer = 0;   // dense and expert parameters of its largest layer
  double largest_dense = 0;   // of those, without experts
  double largest_weight = 0;  // of a single linear layer or table
  double distinct = 0;        // parameters of its distinct weight shapes, one expert for all
  double adapters = 0;        // LoRA: what the job trains, beside all of these
};

// Bytes.
struct StageState {
  double parameters = 0, gradients = 0, optimizer = 0;
  double quantised_copies = 0;  // low-precision weights beside the bf16 ones
  double dummy_gradients = 0;   // Transformer Engine's cached weight gradients
  double buckets = 0;           // gradient buckets
  double update_gather = 0;     // flat copies through which the update gathers parameters
  double gathered = 0;          // ZeRO-3: whole parameters and gradients while a layer is at work
  double gathered_at_loss = 0;  // and at the loss, before the first backward
  double sums = 0;              // of earlier microbatches' gradients, beside buckets or shards
  double offloaded = 0;         // in host memory
};
StageState stage_state(const StageParameters& p, const Model& model, const Job& job,
                       const Layout& layout, const Stack& stack, const MemoryTraits& traits);

}  // namespace orrery
