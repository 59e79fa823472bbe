// SPDX-License-Identifier: Apache-2.0
// Says what a stack keeps in device memory, and what its recompute runs again.
#pragma once

#include "workloads/stack/unstated.h"

namespace orrery {

// What a stack keeps in device memory beside parameters, gradients, state and activations.
struct StackMemory {
  Sourced<double> allocator_rounding;   // reserved over allocated at the peak
  Sourced<Bytes> context;               // CUDA context, NCCL and library workspaces
  bool loss_in_fp32 = true;             // logits are kept in fp32 too
  bool fused_loss = false;              // no fp32 copy of the logits
  bool gradient_bucket_copies = false;  // DDP buckets in the parameters' format beside fp32 sums
  // Gradients of all microbatches but the last add up in tensors of their own beside DDP's buckets.
  bool gradient_sums_beside_buckets = false;
  bool keeps_pipeline_outputs = false;  // every microbatch's logits stay until the step ends
  Sourced<double> sequence_buffers;     // whole hidden states kept for sequence-parallel gathers
  // A master weight is the bf16 parameter and the 16 bits that it lacks: 2 B beside the parameter,
  // not 4. Parameters that exist in 8 bits only have nothing to share.
  bool master_remainders = false;
  // What a quantised product reads stays in 16 bits from forward to backward, which quantises it
  // again (torchao's float8 and MX linear layers save their inputs as they came); else in the bits
  // of the recipe (Transformer Engine).
  bool inputs_in_16_bits = false;
  // ZeRO-3 keeps a 16-bit shard of the parameters, from which it gathers, beside the master's
  // (Megatron-FSDP, DeepSpeed); else it casts the master's as it gathers (FSDP2).
  bool gathers_16_bit_shard = false;
  // What backward needs is kept in few bits also where kernels of 16 bits made it (DeepSeek-V3,
  // arXiv 2412.19437, section 3.3.3): activation functions that run again with those of the experts
  // keep their inputs in the products' format, and attention's output lies there once, in 12 bits.
  // The report says so of expert layers; the three dense ones are taken to do the same.
  bool compact_activations = false;
};

// What a layer runs again where a layout recomputes it.
struct StackRecompute {
  bool selects_attention = true;  // "selective" recomputes the attention core
  // "selective" keeps the outputs of attention, of every second product (the first, the third, ...)
  // and of reductions over tp, and runs all else again (TorchTitan's selective_ac_option "op").
  bool by_operation = false;
  // Recomputing a layer, or its feed-forward part alone, ends where backward has all that it needs:
  // the last product, what it sends and what follows are left out (PyTorch's non-reentrant
  // checkpoint from 2.1 on; compilers that drop what nobody reads, as XLA does).
  bool stops_early = false;
};

}  // namespace orrery
