// SPDX-License-Identifier: Apache-2.0
// Knows what a stack's autograd, kernels and gradient buffers keep allocated beyond the arithmetic.
#pragma once

#include "workloads/layout/layout.h"
#include "workloads/stack/stack.h"

namespace orrery {

struct MemoryTraits {
  // torch DDP keeps buckets of the whole model in the parameters' format beside the stack's own
  // fp32 accumulators, and the sharded update gathers parameters through a flat copy (nanotron).
  bool bucket_copies = false;
  // Transformer Engine returns one cached dummy gradient per distinct weight shape when the real
  // one is accumulated inside the product (module/base.py, get_dummy_wgrad).
  bool cached_weight_gradients = false;
  bool cached_quantised_weights = false;  // fp8 copies of weights and transposes are kept
  bool persistent_gradients = false;      // gradients live in buffers that outlast the step
  bool unfused_activation = false;        // silu(gate) is kept beside gate, up and their product
  bool contiguous_attention = false;      // the output of attention is copied before its projection
  bool dropout = false;                   // masks of one byte are kept
  // torch.distributed.pipelining keeps every microbatch's logits until the step ends.
  bool keeps_outputs = false;
  double sequence_buffers = 0;   // whole hidden states kept for sequence-parallel all-gathers
  double loss_saved = 0;         // bytes per logit from forward to backward
  double loss_peak = 0;          // bytes per logit at the worst moment of the loss
  double library_workspace = 0;  // bytes that the allocator gives to cuBLAS
};

MemoryTraits memory_traits(const Stack& stack);

// Bytes kept for backward per element of a quantised linear layer's input, and of a cached weight
// with its transpose. Scales included; 2 and 0 where nothing is quantised.
double saved_input_bytes(PrecisionRecipe precision);
double quantised_weight_bytes(PrecisionRecipe precision);
constexpr bool is_quantised(PrecisionRecipe p) {
  return p != PrecisionRecipe::bf16 && p != PrecisionRecipe::fp16;
}

}  // namespace orrery
