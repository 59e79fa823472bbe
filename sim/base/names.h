// SPDX-License-Identifier: Apache-2.0
// Names what all layers share: number formats, kernel libraries, collectives, algorithms.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/text/enum_names.h"

namespace orrery {

// Number format of a kernel's operands. Recipes (which kernels use which) are in
// workloads/layout/layout.
enum class Format : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, fp6, fp4, int8 };

// The library (and generation) that provides a kernel; a calibration is keyed by it.
enum class Library : std::uint8_t {
  cublas,           // cuBLAS(Lt), hipBLASLt, XLA's own: plain and batched products
  deepgemm,         // DeepGEMM: FP8 with 1x128 block scales
  grouped_gemm,     // CUTLASS or TE grouped products of an expert layer
  sequential_gemm,  // one cuBLAS call per expert
  flash2,
  flash3,
  flash4,
  cudnn_attention,   // training; decode with the heads of a group as rows, keys not split
  cudnn_split_keys,  // its decode of one query with grouped heads: keys are split
  triton_attention,
  unfused_attention,
  flashinfer,         // serving attention
  trtllm_attention,   // decode of TensorRT-LLM on Blackwell
  trtllm_xqa,         // on Hopper: grouped heads
  trtllm_masked,      // on Hopper: plain heads and little work
  sglang_attention,   // decode as SGLang calls it: FlashAttention 3, TensorRT-LLM's on Blackwell
  flashmla,           // decode over latents: FlashMLA, TensorRT-LLM's on Blackwell
  sglang_latent,      // the same as SGLang calls it
  trtllm_latent,      // the same of earlier releases of TensorRT-LLM
  vllm_linear,        // 16-bit products on A100 as Vidur timed them for vLLM
  trtllm_linear,      // FP8 products of TensorRT-LLM, a scale per tensor found as they run
  trtllm_blocks,      // the same on Blackwell, a scale for each block of 128
  trtllm_rows,        // FP8 blocks of TensorRT-LLM before 1.3 on Blackwell: products, experts
  flashinfer_blocks,  // the same as FlashInfer generates them: SGLang's where DeepGEMM is off
  trtllm_experts,     // FP8 experts of TensorRT-LLM before 1.2 on Hopper
  trtllm_absorbed,    // its FP8 products of absorbed latents on Hopper, their operands put in order
  sglang_experts,     // expert layers as SGLang runs them on Hopper
  triton_paged,       // Triton kernels of our own engine: attention over a paged cache, experts
  marlin,             // 16-bit operands with integer weights of 4 or 8 bits: Marlin, Machete
  packed_mxfp4,       // MXFP4 weights: OpenAI's Triton kernels, TensorRT-LLM's on Blackwell
  fused,              // hand-fused memory-bound kernels (Transformer Engine, Apex)
  inductor,           // torch.compile
  eager,              // one kernel per framework operation
  own,                // kernels of validation/microbench: what the device allows
};

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_receive,
};
enum class CollectiveAlgorithm : std::uint8_t {
  ring,
  tree,
  nvls,
  nvls_tree,
  collnet,
  pat,
  direct,
  hierarchical,
  custom_all_reduce,
  deepep,
};
enum class CollectiveProtocol : std::uint8_t { ll, ll128, simple };
// Whose implementation moves the bytes. custom: TensorRT-LLM's one-shot all-reduce; vllm: vLLM's
// one-shot, two-shot and multicast all-reduces; all of them leave large messages to NCCL. nvlink
// two- and one-sided: TensorRT-LLM's exchanges of tokens inside one scale-up domain.
enum class CollectiveLibrary : std::uint8_t {
  nccl,
  rccl,
  custom,
  deepep,
  xla,
  vllm,
  nvlink_two_sided,
  nvlink_one_sided,
};

// Texts as they stand in catalogue files, lower case.
inline constexpr auto format_text =
    enum_names<Format>({"fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8"});
inline constexpr auto library_text = enum_names<Library>({
    "cublas",
    "deepgemm",
    "grouped-gemm",
    "sequential-gemm",
    "flash2",
    "flash3",
    "flash4",
    "cudnn-attention",
    "cudnn-split-keys",
    "triton-attention",
    "unfused-attention",
    "flashinfer",
    "trtllm-attention",
    "trtllm-xqa",
    "trtllm-masked",
    "sglang-attention",
    "flashmla",
    "sglang-latent",
    "trtllm-latent",
    "vllm-linear",
    "trtllm-linear",
    "trtllm-linear-blocks",
    "trtllm-rows",
    "flashinfer-blocks",
    "trtllm-experts",
    "trtllm-absorbed",
    "sglang-experts",
    "triton-paged",
    "marlin",
    "packed-mxfp4",
    "fused",
    "inductor",
    "eager",
    "own",
});
inline constexpr auto collective_kind_text = enum_names<CollectiveKind>(
    {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-receive"});
inline constexpr auto collective_algorithm_text =
    enum_names<CollectiveAlgorithm>({"ring", "tree", "nvls", "nvls-tree", "collnet", "pat",
                                     "direct", "hierarchical", "custom-all-reduce", "deepep"});
inline constexpr auto collective_protocol_text =
    enum_names<CollectiveProtocol>({"ll", "ll128", "simple"});
inline constexpr auto collective_library_text = enum_names<CollectiveLibrary>(
    {"nccl", "rccl", "custom", "deepep", "xla", "vllm", "nvlink-two-sided", "nvlink-one-sided"});

inline constexpr int format_count = format_text.count;
inline constexpr int library_count = library_text.count;
inline constexpr int collective_algorithm_count = collective_algorithm_text.count;
inline constexpr int collective_protocol_count = collective_protocol_text.count;
inline constexpr int collective_library_count = collective_library_text.count;

constexpr std::string_view to_text(Format f) { return format_text[f]; }
constexpr std::string_view to_text(Library l) { return library_text[l]; }
constexpr std::string_view to_text(CollectiveKind k) { return collective_kind_text[k]; }
constexpr std::string_view to_text(CollectiveAlgorithm a) { return collective_algorithm_text[a]; }
constexpr std::string_view to_text(CollectiveProtocol p) { return collective_protocol_text[p]; }
constexpr std::string_view to_text(CollectiveLibrary l) { return collective_library_text[l]; }

// Bytes of one element (fp4: 0.5, fp6: 0.75; tf32 is stored in 4).
constexpr double bytes_per_element(Format f) {
  constexpr std::array<double, format_count> size = {8, 4, 4, 2, 2, 1, 0.75, 0.5, 1};
  return size[static_cast<std::size_t>(f)];
}

}  // namespace orrery
