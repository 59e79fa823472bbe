// SPDX-License-Identifier: Apache-2.0
// Says which kernels a stack runs, and how much memory traffic those make that are not products.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/names.h"
#include "workloads/stack/unstated.h"

namespace orrery {

// Linear layers that LoRA gives adapters. Routed experts have none: recipes for models with experts
// adapt attention (NeMo: recipes/mixtral_8x7b.py).
enum class AdapterSites : std::uint8_t {
  every_linear,     // attention's, latent projections, dense and shared feed-forwards, Mamba's
  query_key_value,  // what makes queries, keys and values
};

// One pass of mamba_ssm's scan, in operations of the fp32 units that take as long: for a token and
// channel, for a token, channel and state, and for a token, group and state of B and C. That is
// processors times clock: H200, with 43% more bandwidth than H100, shortens a scan by 5 to 13%.
struct ScanPass {
  Sourced<double> channel, state, group;
};

// The kernels of Mamba-2 layers that are not products.
struct ScanCost {
  static constexpr const char* scanned =
      "mamba_ssm 2.3.2, chunks of 128 on H100 and H200, 21 shapes of four models: one law, 1.8% "
      "(forward) and 2.4% (backward) off in the mean; extremes with one model left out. Triton's "
      "scan on a B200 (cuDNN's page, chunks of 32) takes a fifth more than it says, so does the "
      "upper end";
  static constexpr const char* convolved =
      "causal_conv1d of TensorRT-LLM on six devices, long contexts: 2.7 TB/s on H100, 3.2 on H200, "
      "4.0 to 4.4 on Blackwell, as processors times clock grow";
  static constexpr const char* whole =
      "all between the projections of a Nemotron-H 8B layer on one H100 (h100_mixers.jsonl), 8,192 "
      "tokens: 0.94 ms forward, 3.29 ms backward, of them norm 0.55 and scan 2.25; one shape";
  static constexpr const char* measured = "orrery-measured-h200-sxm";
  ScanPass forward{.channel = unstated(248.0, 233.0, 300.0, Evidence::measured, scanned, measured),
                   .state = unstated(1.4, 1.38, 1.68, Evidence::measured, scanned, measured),
                   .group = unstated(221.0, 124.0, 270.0, Evidence::measured, scanned, measured)};
  ScanPass backward{
      .channel = unstated(916.0, 818.0, 1100.0, Evidence::measured, scanned, measured),
      .state = unstated(3.56, 3.44, 4.3, Evidence::measured, scanned, measured),
      .group = unstated(1627.0, 1026.0, 1981.0, Evidence::measured, scanned, measured)};
  // Operations of an element of the convolution.
  Sourced<double> convolution =
      unstated(77.0, 72.0, 82.0, Evidence::measured, convolved, "aiconfigurator-operators");
  Sourced<double> convolution_backward =
      unstated(265.0, 200.0, 300.0, Evidence::measured, whole, "orrery-measured-h100-sxm");
  // Operations of an element of the gated norm, backward; forward its traffic decides.
  Sourced<double> norm_backward =
      unstated(540.0, 400.0, 600.0, Evidence::measured, whole, "orrery-measured-h100-sxm");
  static constexpr const char* delta =
      "Flash Linear Attention in TensorRT-LLM 1.3 and SGLang 0.5.14, H200 and B200, prompts of "
      "1,024 to 16,384 tokens: 900 to 1,300; FlashInfer in vLLM 0.24: 400";
  // Gated delta rule of a prompt: operations of a token and channel of the values.
  Sourced<double> delta_rule =
      unstated(1000.0, 400.0, 1300.0, Evidence::measured, delta, "aiconfigurator-operators");
};

// What a step does once to parameters and their gradients.
struct StackUpdate {
  static constexpr const char* one_pass =
      "one read and one write of what it touches; library "
      "kernels that run an update in parts add up to a fifth";
  // Whose kernels update parameters, where these are not the ones that move a layer's data: layers
  // that run kernel by kernel may have a fused update. Empty: as those.
  std::optional<Library> library;
  // Traffic of the update over one read and one write of what it touches, of states in FP32 and of
  // parameters and states all in 16 bits, of which an element's arithmetic hides less. Most stacks
  // leave both out.
  Sourced<double> passes = unstated(1.0, 1.0, 1.2, Evidence::assumed, one_pass);
  Sourced<double> passes_16_bit = unstated(1.0, 1.0, 1.2, Evidence::assumed, one_pass);
  // Reads and writes of every whole gradient in a step beside sums, reductions and the update,
  // where ranks share it: its division by their number, checks for NaN, zeros that start the next
  // step.
  Sourced<double> gradient_touches = unstated(0.0);
};

// Passes are memory traffic over the least that a kernel could move, as each line states it.
struct StackKernels {
  Library attention = Library::flash2;
  // Decode over latents (MLA, absorbed), where a stack has a kernel of its own for it.
  std::optional<Library> latent_attention;
  Format attention_format = Format::bf16;  // fp8 where the recipe quantises attention
  Library gemm = Library::cublas;
  Library grouped_gemm = Library::grouped_gemm;
  Library memory_bound = Library::fused;  // norms, activations, rotary, residuals
  // Whose kernels time these: traffic is counted in passes of theirs. Empty: of memory_bound.
  std::optional<Library> counted_in;
  Library stream_library() const { return counted_in.value_or(memory_bound); }
  Sourced<double> elementwise_passes;    // memory traffic of these over a perfectly fused layer's
  Sourced<double> loss_bytes_per_logit;  // traffic of the loss, forward and backward together
  Sourced<double> quantise_passes;       // traffic of quantise kernels over one read and one write
  Sourced<double> permute_passes;        // expert permute traffic over one read and one write
  StackUpdate update;
  Library update_library() const { return update.library.value_or(stream_library()); }
  // Kernels of a layer's pass that move next to nothing (memsets, casts, copies of views), beyond
  // those that its operations list.
  Sourced<double> small_kernels_forward = unstated(0.0), small_kernels_backward = unstated(0.0);
  // Experts with biases: traffic of adding them to the outputs by kernels of their own, over one
  // read and one write (0: the products add them), and of their activation over a fused one's,
  // where no fused kernel takes a bias.
  Sourced<double> expert_bias_passes = unstated(0.0), biased_activation_passes = unstated(1.0);
  ScanCost scan;
  // Grouped products apply the activation and quantise what the next product reads: neither is a
  // kernel of its own. Not for experts with biases, which they cannot add.
  bool fused_expert_mlp = false;
  bool fused_gradient_accumulation = false;  // weight-gradient products add into the gradient
                                             // buffer (gradient_storage) themselves
  // Traffic of adding a microbatch's gradients to those before it by kernels of their own, over one
  // read of both and one write.
  Sourced<double> accumulate_passes =
      unstated(1.0, 1.0, 1.0, Evidence::assumed, "one kernel that reads both and writes the sum");
  // The norm before a linear layer is part of that layer (Transformer Engine's LayerNormLinear) and
  // cannot run again alone; those that several layers read are modules of their own.
  bool fused_norms = false;
  // 8-bit products read both operands along k only (Hopper), so that what two products use is kept
  // twice, as is and transposed. Without it one copy of per-tensor scales serves both.
  bool transposed_copies = true;
  // Time of the release's products and attention over that of the libraries that calibrations
  // measured: kernels for a chip get faster for years. Where a stack says nothing its libraries are
  // taken to be those that were measured; releases of NeMo, whose age was fitted, lose 0 to 14%.
  Sourced<double> kernel_age =
      unstated(1.0, 1.0, 1.0, Evidence::assumed, "libraries as the calibrated ones; not fitted");
  // LoRA: the linear layers that have adapters, and traffic of adding an adapter's output to the
  // layer's over one read of both and one write (0: a kernel of the adapter does it).
  AdapterSites adapter_sites = AdapterSites::every_linear;
  Sourced<double> adapter_passes = unstated(1.0);
};

// What dropout costs, as measured with PyTorch 2.11 on an H100.
struct StackDropout {
  // Operations of the fp32 units that a score's random number takes as long as: attention kernels
  // hide it behind nothing. Of cuDNN, whatever the head size, and of FlashAttention 2.
  Sourced<double> score_forward =
      unstated(64.0, 58.0, 70.0, Evidence::measured,
               "cuDNN: 3.7 to 4.4 scores a clock and processor", "orrery-measured-h100-sxm");
  Sourced<double> score_backward =
      unstated(39.0, 36.0, 45.0, Evidence::measured,
               "cuDNN: 5.7 to 7.0 scores a clock and processor", "orrery-measured-h100-sxm");
  Sourced<double> flash_forward = unstated(22.0, 17.0, 29.0, Evidence::measured,
                                           "FlashAttention 2: 9 to 15 scores a clock and processor",
                                           "orrery-measured-h100-sxm");
  Sourced<double> flash_backward = unstated(
      35.0, 24.0, 48.0, Evidence::measured,
      "FlashAttention 2: 5.3 to 11 scores a clock and processor", "orrery-measured-h100-sxm");
  // Bytes of an element beside those of adding it to the residual, in one compiled kernel.
  Sourced<double> hidden_forward =
      unstated(4.6, 2.0, 7.0, Evidence::measured,
               "bias, dropout and addition in one compiled kernel, over bias and addition",
               "orrery-measured-h100-sxm");
  Sourced<double> hidden_backward =
      unstated(5.0, 2.0, 7.0, Evidence::measured, "as forward", "orrery-measured-h100-sxm");
};

}  // namespace orrery
