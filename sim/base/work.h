// SPDX-License-Identifier: Apache-2.0
// Describes what a kernel must do, whatever the machine: shapes, formats, bytes and operations.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/names.h"

namespace orrery {

enum class WorkKind : std::uint8_t {
  gemm,               // plain, batched (groups > 1, same shape) or grouped product
  grouped_gemm,       // expert layer: `groups` products of about m rows each
  attention_forward,  // prefill or training forward
  attention_backward,
  attention_decode,  // one (or few) query rows a sequence over a paged KV cache
  norm,
  softmax,
  elementwise,
  rotary,
  cross_entropy,
  embedding,  // gather (forward) or scatter-add (backward)
  router,     // gate scores, top-k
  permute,    // tokens to experts' order and back
  quantise,
  optimizer,
  copy,       // device-local copy
  host_copy,  // over PCIe or C2C
};
inline constexpr auto work_kind_text = enum_names<WorkKind>({
    "gemm",
    "grouped-gemm",
    "attention-forward",
    "attention-backward",
    "attention-decode",
    "norm",
    "softmax",
    "elementwise",
    "rotary",
    "cross-entropy",
    "embedding",
    "router",
    "permute",
    "quantise",
    "optimizer",
    "copy",
    "host-copy",
});
inline constexpr int work_kind_count = work_kind_text.count;
constexpr std::string_view to_text(WorkKind k) { return work_kind_text[k]; }

// The three layouts of one linear layer's products have their own efficiency.
enum class GemmRole : std::uint8_t { forward, input_gradient, weight_gradient };
inline constexpr auto gemm_role_text =
    enum_names<GemmRole>({"forward", "input-gradient", "weight-gradient"});

// Shapes of one kernel on one device. Unused fields stay zero. Extents are elements, per device.
struct Work {
  WorkKind kind = WorkKind::elementwise;
  Format input = Format::bf16;  // operand format (the format of the tensor unit that runs it)
  Format output = Format::bf16;
  // gemm, grouped_gemm: C[m, n] = A[m, k] B[k, n], `groups` times.
  GemmRole role = GemmRole::forward;
  bool accumulate_fp32 = false;  // the result is added to an fp32 buffer (weight gradients)
  bool block_scales = false;     // 8-bit operands have a scale for each block of 32 (MX)
  std::int64_t m = 0, n = 0, k = 0, groups = 1;
  std::int64_t pool = 0;  // grouped_gemm: groups that there are, with rows or without; 0: `groups`
  // grouped_gemm: rows that tensor cores multiply for each group, those that fill its tiles
  // included; 0: m. They cost energy. Time goes by m: curves are fitted to what was measured.
  std::int64_t filled_m = 0;
  // Bits of an element of the second operand (weights; keys and values of a decode) in memory, its
  // scales included, where they are unpacked to `input` on the way; 0: as `input`.
  double stored_bits = 0;
  // attention_*: batch sequences, q_length query rows each against kv_length keys.
  std::int64_t batch = 0, heads = 0, kv_heads = 0, q_length = 0, kv_length = 0;
  std::int64_t qk_dim = 0, v_dim = 0;
  std::int64_t window = 0;  // keys that a query sees at most; 0: all
  bool causal = false;
  // Memory-bound kinds (and host_copy): traffic. m is the blocks that share it, such as one a row;
  // 0: more than the device has processors for.
  double bytes_read = 0, bytes_written = 0;
  // Operations on the vector units: of memory-bound kinds beside the traffic, of attention beside
  // nothing (the random numbers of dropout).
  double vector_flop = 0;
};

// A Work in the library that runs it: timings differ between FlashAttention 2 and 3.
struct Kernel {
  Work work;
  Library library = Library::cublas;
};

constexpr bool is_product(WorkKind kind) {
  return kind == WorkKind::gemm || kind == WorkKind::grouped_gemm;
}
constexpr bool is_attention(WorkKind kind) {
  return kind == WorkKind::attention_forward || kind == WorkKind::attention_backward ||
         kind == WorkKind::attention_decode;
}

// Query-key pairs that are computed in all sequences and heads: causal and window masks taken into
// account. A causal mask lets the last query see all keys (queries stand at the end of the keys,
// as in FlashAttention 2.1 and later). 0 for other kinds.
inline double visible_scores(const Work& work) {
  if (!is_attention(work.kind)) return 0;
  const auto queries = static_cast<double>(work.q_length);
  const auto keys = static_cast<double>(work.kv_length);
  const double window = work.window > 0 ? static_cast<double>(work.window) : keys;
  double pairs = queries * std::min(keys, window);
  if (work.causal) {
    // Queries see first, first + 1, ... keys (capped by the window); those before see none.
    const double first = std::max(1.0, keys - queries + 1);
    const double growing_to = std::min(keys, std::max(window, first - 1));
    pairs = (first + growing_to) * (growing_to - first + 1) / 2 + window * (keys - growing_to);
  }
  return pairs * static_cast<double>(work.batch) * static_cast<double>(work.heads);
}

// Operations that the tensor units must do: 2mnk * groups for products, the visible (causal,
// window) scores times 2 (qk_dim + v_dim) for attention forward, 2.5 times that for backward; 0 for
// memory-bound kinds.
inline double tensor_flop(const Work& work) {
  if (is_product(work.kind))
    return 2.0 * static_cast<double>(work.m) * static_cast<double>(work.n) *
           static_cast<double>(work.k) * static_cast<double>(work.groups);
  if (!is_attention(work.kind)) return 0;
  // Backward does five products (scores again, dV, dP, dQ, dK) where forward does two.
  const double products = work.kind == WorkKind::attention_backward ? 2.5 : 1.0;
  return products * 2.0 * visible_scores(work) * static_cast<double>(work.qk_dim + work.v_dim);
}

// Bytes of an element of the second operand in memory.
constexpr double stored_bytes(const Work& work) {
  return work.stored_bits > 0 ? work.stored_bits / 8 : bytes_per_element(work.input);
}

// Least bytes that must cross the memory: operands read once, results written once. A product that
// accumulates reads and writes its fp32 buffer. Attention reads only the keys that some query sees;
// a decode whose single KV head has values narrower than its keys is MLA's latent cache, where the
// values are part of the keys and cost nothing more.
double minimum_bytes(const Work& work);

}  // namespace orrery
