// Knows the bytes of parameters, gradients and optimizer state on one rank, and what sharding adds.
#pragma once

#include "workloads/job.h"
#include "workloads/layout.h"
#include "workloads/memory_traits.h"
#include "workloads/model.h"

namespace orrery {

// Parameters of one layer on one rank before ZeRO shards them.
struct LocalParameters {
  double dense = 0;           // split over tp, or replicated
  double expert = 0;          // split over ep x etp
  double products = 0;        // of `dense`, those of linear layers (quantised by the recipe)
  double one_expert = 0;      // of `expert`, those of a single expert
  double largest_weight = 0;  // of its largest linear layer, one expert's where it has experts
};
LocalParameters local_parameters(const Model& model, const LayerClass& layer, const Layout& layout);

// What lies on one stage.
struct StageParameters {
  double dense = 0, expert = 0, products = 0;
  double vocabulary = 0;      // embedding, head, position table: part of `dense`, never quantised
  double largest_layer = 0;   // dense and expert parameters of its largest layer
  double largest_dense = 0;   // of those, without experts
  double largest_weight = 0;  // of a single linear layer or table
  double distinct = 0;        // parameters of its distinct weight shapes, one expert for all
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
