// SPDX-License-Identifier: Apache-2.0
// Knows which class of work a kernel is of, and in which number format it multiplies, by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/names.h"
#include "sim/base/text/enum_names.h"

namespace orrery::observe {

enum class KernelClass : std::uint8_t {
  product,  // matrix products, and what joins their parts
  attention,
  convolution,
  norm,
  softmax,  // and losses
  reduction,
  elementwise,
  indexing,  // embeddings, gathers, permutations of tokens, sorts
  quantise,  // casts and scales of FP8 and smaller
  scan,      // state-space and linear-attention recurrences
  optimizer,
  copy_to_device,
  copy_to_host,
  copy_on_device,
  copy_peer,
  set,
  communication,
  other,
};
inline constexpr auto kernel_class_text = enum_names<KernelClass>(
    {"product", "attention", "convolution", "norm", "softmax", "reduction", "elementwise",
     "indexing", "quantise", "scan", "optimizer", "copy to device", "copy to host",
     "copy on device", "copy between devices", "set", "communication", "other"});
inline constexpr std::size_t kernel_classes = kernel_class_text.count;

// By the first row of the table whose text the name holds; `other` where none does.
KernelClass kernel_class(std::string_view name);
// Of a kernel of products or attention; nothing where the name does not say.
std::optional<Format> product_format(std::string_view name);
// Of a kernel of communication; nothing where the name does not say. The same of what a profiler
// calls a collective ("_allgather_base"), and of NVTX ("ncclAllReduce").
std::optional<CollectiveKind> collective_kind(std::string_view name);
// Of a framework's name ("c10::BFloat16", "float", "Float8_e4m3fn") or NCCL's ("Bfloat16").
std::optional<Format> format_of_type(std::string_view type, bool tf32 = false);
// Of one element, as NCCL's calls name types ("Float", "BFloat16", "Long"); 0 where unknown.
int bytes_of_type(std::string_view type);
// Whether a framework's operation is a matrix product itself ("aten::mm"), not what calls one.
bool is_product_operation(std::string_view name);

}  // namespace orrery::observe
