// SPDX-License-Identifier: Apache-2.0
// Reads what a stack keeps allocated off its kernels and formats.
#include "workloads/stack/memory_traits.h"

namespace orrery {
namespace {

// PyTorch allocates 32 MiB for each cuBLAS handle since Hopper: one handle in the main thread, one
// in that of autograd (aten/src/ATen/cuda/CublasHandlePool.cpp).
constexpr double cublas_workspaces = 2 * 32.0 * 1024 * 1024;

struct LossBytes {
  double saved = 0, peak = 0;
};

// A fused loss turns bf16 logits into their gradient in place. Megatron's casts bf16 logits to fp32
// and works in place (2 + 4). PyTorch's keeps log-probabilities and adds two gradients of their
// size in backward (12). nanotron's sharded loss holds logits, their fp32 cast, the shifted copy
// and the exponentials (2 + 4 + 4 + 4).
LossBytes loss_bytes(const Stack& stack) {
  if (stack.memory.fused_loss) return {.saved = 2, .peak = 4};
  if (!stack.memory.loss_in_fp32) return {.saved = 2, .peak = 6};
  if (stack.kernels.memory_bound == Library::fused) return {.saved = 4, .peak = 6};
  return {.saved = 4, .peak = stack.kernels.memory_bound == Library::inductor ? 12.0 : 14.0};
}

}  // namespace

MemoryTraits memory_traits(const Stack& stack) {
  const bool flash = stack.kernels.attention != Library::unfused_attention;
  const bool transformer_engine = stack.kernels.memory_bound == Library::fused && flash;
  const LossBytes loss = loss_bytes(stack);
  return {
      .bucket_copies = stack.memory.gradient_bucket_copies,
      .cached_weight_gradients = transformer_engine && stack.kernels.fused_gradient_accumulation,
      .cached_quantised_weights = transformer_engine && stack.kernels.fused_gradient_accumulation,
      .persistent_gradients =
          stack.memory.gradient_bucket_copies || stack.kernels.fused_gradient_accumulation,
      .unfused_activation = stack.kernels.memory_bound == Library::eager,
      .contiguous_attention = stack.kernels.memory_bound == Library::inductor,
      .dropout = !flash,
      .keeps_outputs = stack.memory.keeps_pipeline_outputs,
      .sequence_buffers = stack.memory.sequence_buffers.get(),
      .loss_saved = loss.saved,
      .loss_peak = loss.peak,
      .library_workspace = cublas_workspaces};
}

double saved_input_bytes(PrecisionRecipe precision) {
  switch (precision) {
    case PrecisionRecipe::bf16:
    case PrecisionRecipe::fp16:
      return 2;
    case PrecisionRecipe::fp8_delayed:
    case PrecisionRecipe::fp8_current:
      return 1;
    case PrecisionRecipe::fp8_blockwise:
      return 1 + 4.0 / 128;  // an fp32 scale per 128
    case PrecisionRecipe::mxfp8:
      return 1 + 1.0 / 32;  // a scale byte per 32
    case PrecisionRecipe::nvfp4:
      return 0.5 + 1.0 / 16;  // a scale byte per 16
    case PrecisionRecipe::mxfp4:
      return 0.5 + 1.0 / 32;  // a scale byte per 32
    case PrecisionRecipe::int4:
      return 0.5 + 2.0 / 32;  // a 16-bit scale per 32, as in Kimi K2's checkpoints
    case PrecisionRecipe::int8:
      return 1 + 2.0 / 128;  // a 16-bit scale per 128
  }
  return 2;
}

double quantised_weight_bytes(PrecisionRecipe precision) {
  return is_quantised(precision) ? 2 * saved_input_bytes(precision) : 0;
}

}  // namespace orrery
