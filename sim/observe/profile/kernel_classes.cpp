// SPDX-License-Identifier: Apache-2.0
// Lists pieces of names of kernels with the class that they tell. Names are those that PyTorch,
// Transformer Engine, Apex, cuBLAS, cuDNN, CUTLASS, Triton, XLA and NCCL give their kernels.
#include "sim/observe/profile/kernel_classes.h"

#include <array>
#include <string>

#include "sim/base/text/lower_case.h"

namespace orrery::observe {
namespace {

using enum KernelClass;

struct NamePart {
  std::string_view part;  // in small letters
  KernelClass found;
};
// The first that fits counts: what is special stands before what is general.
constexpr std::array name_parts = {
    NamePart{"nccl", communication},
    NamePart{"rccl", communication},
    NamePart{"nvshmem", communication},
    NamePart{"deep_ep", communication},
    NamePart{"userbuffers", communication},
    NamePart{"cross_device_reduce", communication},
    NamePart{"one_shot_all_reduce", communication},
    NamePart{"two_shot_all_reduce", communication},
    NamePart{"multimem_", communication},
    NamePart{"memcpy htod", copy_to_device},
    NamePart{"memcpy dtoh", copy_to_host},
    NamePart{"memcpy dtod", copy_on_device},
    NamePart{"memcpy ptop", copy_peer},
    NamePart{"memset", set},
    // What sharded programs do before and after a collective: buffers are joined and taken apart.
    NamePart{"copyfunctor", copy_on_device},
    NamePart{"at::native::copy<", copy_on_device},  // of lists of tensors, in one format
    NamePart{"chunk_cat", copy_on_device},
    NamePart{"split_with_sizes_copy", copy_on_device},
    NamePart{"multi_tensor_apply", optimizer},
    NamePart{"multitensorapply", optimizer},
    NamePart{"fusedadam", optimizer},
    NamePart{"fused_adam", optimizer},
    NamePart{"adam_cuda", optimizer},
    NamePart{"adamw", optimizer},
    NamePart{"lamb_", optimizer},
    NamePart{"muon", optimizer},
    NamePart{"layer_norm", norm},
    NamePart{"layernorm", norm},
    NamePart{"rmsnorm", norm},
    NamePart{"rms_norm", norm},
    NamePart{"flash", attention},
    NamePart{"fmha", attention},
    NamePart{"sdpa", attention},
    NamePart{"attention", attention},
    NamePart{"attn", attention},
    NamePart{"decode_kernel", attention},
    NamePart{"batchdecode", attention},
    NamePart{"batchprefill", attention},
    NamePart{"chunk_kernel", attention},
    NamePart{"compute_dot_do_o", attention},
    NamePart{"convert_dq_to", attention},
    NamePart{"mha_", attention},
    NamePart{"softmax", softmax},
    NamePart{"cross_entropy", softmax},
    NamePart{"crossentropy", softmax},
    NamePart{"nll_loss", softmax},
    NamePart{"selective_scan", scan},
    NamePart{"ssd_", scan},
    NamePart{"chunk_scan", scan},
    NamePart{"chunk_state", scan},
    NamePart{"gated_delta", scan},
    NamePart{"cast_transpose", quantise},
    NamePart{"quantize", quantise},
    NamePart{"mxfp8", quantise},
    NamePart{"amax", quantise},
    NamePart{"ln_fwd", norm},
    NamePart{"ln_bwd", norm},
    NamePart{"ln_", norm},
    NamePart{"gammabeta", norm},
    NamePart{"batch_norm", norm},
    NamePart{"group_norm", norm},
    NamePart{"normalization", norm},
    NamePart{"rsqrt", norm},
    NamePart{"fprop", convolution},
    NamePart{"dgrad", convolution},
    NamePart{"implicit_convolve", convolution},
    NamePart{"causal_conv1d", convolution},
    NamePart{"convolution", convolution},
    NamePart{"conv2d", convolution},
    NamePart{"winograd", convolution},
    NamePart{"gemm", product},
    NamePart{"nvjet", product},
    NamePart{"gemv", product},
    NamePart{"cutlass", product},
    NamePart{"splitkreduce", product},
    NamePart{"cublas", product},
    NamePart{"cijk_", product},
    NamePart{"xmma", product},
    NamePart{"tensorop", product},
    NamePart{"matmul", product},
    NamePart{"triton_tem_", product},
    NamePart{"dot_kernel", product},
    NamePart{"embedding", indexing},
    NamePart{"index_", indexing},
    NamePart{"indexing", indexing},
    NamePart{"indexselect", indexing},
    NamePart{"indexfunc", indexing},
    NamePart{"gather", indexing},
    NamePart{"scatter", indexing},
    NamePart{"permute", indexing},
    NamePart{"radixsort", indexing},
    NamePart{"radix_sort", indexing},
    NamePart{"bitonic", indexing},
    NamePart{"topk", indexing},
    NamePart{"catarraybatched", elementwise},
    NamePart{"triton_poi_", elementwise},
    NamePart{"triton_red_", reduction},
    NamePart{"triton_per_", reduction},
    NamePart{"reduce", reduction},
    NamePart{"l2norm", reduction},
    NamePart{"elementwise", elementwise},
    NamePart{"dropout", elementwise},
    NamePart{"rope", elementwise},
    NamePart{"rotary", elementwise},
    NamePart{"swiglu", elementwise},
    NamePart{"geglu", elementwise},
    NamePart{"gelu", elementwise},
    NamePart{"silu", elementwise},
    NamePart{"activation", elementwise},
    NamePart{"bias", elementwise},
    NamePart{"fusion", elementwise},  // of XLA
    NamePart{"copy", elementwise},
    NamePart{"fill", elementwise},
    NamePart{"distribution", elementwise},
    NamePart{"transpose", elementwise},
};

struct FormatPart {
  std::string_view part;
  Format found;
};
// cuBLAS' nvjet kernels name types by letters (t bf16, h fp16, s fp32, q FP8, o FP4); "s1688" alone
// is TF32 (16x8x8 of fp32 operands), since bf16 and fp16 name themselves.
constexpr std::array format_parts = {
    FormatPart{"e2m1", Format::fp4},      FormatPart{"nvfp4", Format::fp4},
    FormatPart{"mxfp4", Format::fp4},     FormatPart{"_oot", Format::fp4},
    FormatPart{"_oos", Format::fp4},      FormatPart{"_ooh", Format::fp4},
    FormatPart{"e4m3", Format::fp8},      FormatPart{"e5m2", Format::fp8},
    FormatPart{"fp8", Format::fp8},       FormatPart{"float8", Format::fp8},
    FormatPart{"_qq", Format::fp8},       FormatPart{"bf16", Format::bf16},
    FormatPart{"bfloat16", Format::bf16}, FormatPart{"_tst_", Format::bf16},
    FormatPart{"_tss_", Format::bf16},    FormatPart{"_ttt_", Format::bf16},
    FormatPart{"fp16", Format::fp16},     FormatPart{"float16", Format::fp16},
    FormatPart{"f16f16", Format::fp16},   FormatPart{"half", Format::fp16},
    FormatPart{"hgemm", Format::fp16},    FormatPart{"_hsh_", Format::fp16},
    FormatPart{"_hss_", Format::fp16},    FormatPart{"h884", Format::fp16},
    FormatPart{"s884", Format::fp16},     FormatPart{"h1688", Format::fp16},
    FormatPart{"h16816", Format::fp16},   FormatPart{"_f16_", Format::fp16},
    FormatPart{"i16832", Format::int8},   FormatPart{"i8816", Format::int8},
    FormatPart{"imma", Format::int8},     FormatPart{"tf32", Format::tf32},
    FormatPart{"s1688", Format::tf32},    FormatPart{"_sss_", Format::tf32},
    FormatPart{"dgemm", Format::fp64},    FormatPart{"d884", Format::fp64},
    FormatPart{"sgemm", Format::fp32},    FormatPart{"f32f32_f32f32", Format::fp32},
    FormatPart{"ffma", Format::fp32},     FormatPart{"_f32_", Format::fp32},
};

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

KernelClass kernel_class(std::string_view name) {
  const std::string small = lower_case(std::string(name));
  for (const NamePart& row : name_parts)
    if (holds(small, row.part)) return row.found;
  return other;
}

std::optional<Format> product_format(std::string_view name) {
  const std::string small = lower_case(std::string(name));
  // cuDNN's attention says "f16" of bf16 as well.
  if (holds(small, "sdpa")) return std::nullopt;
  for (const FormatPart& row : format_parts)
    if (holds(small, row.part)) return row.found;
  return std::nullopt;
}

std::optional<CollectiveKind> collective_kind(std::string_view name) {
  std::string small;
  for (const char c : name)
    if (c != '_' && c != ' ') small += lower_case(c);
  constexpr std::array<std::pair<std::string_view, CollectiveKind>, 14> parts = {
      {{"allreduce", CollectiveKind::all_reduce},
       {"crossdevicereduce", CollectiveKind::all_reduce},
       {"sumreduce", CollectiveKind::all_reduce},
       {"reducescatter", CollectiveKind::reduce_scatter},
       {"allgather", CollectiveKind::all_gather},
       {"alltoall", CollectiveKind::all_to_all},
       {"deepep", CollectiveKind::all_to_all},
       {"broadcast", CollectiveKind::broadcast},
       {"sendrecv", CollectiveKind::send_receive},
       {"ncclsend", CollectiveKind::send_receive},
       {"ncclrecv", CollectiveKind::send_receive},
       {"batchisendirecv", CollectiveKind::send_receive},
       {"coalesced", CollectiveKind::send_receive},
       {"bcast", CollectiveKind::broadcast}}};
  for (const auto& [part, kind] : parts)
    if (holds(small, part)) return kind;
  if (small == "send" || small == "recv") return CollectiveKind::send_receive;
  return std::nullopt;
}

std::optional<Format> format_of_type(std::string_view type, bool tf32) {
  const std::string small = lower_case(std::string(type));
  if (holds(small, "float8")) return Format::fp8;
  if (holds(small, "float4")) return Format::fp4;
  if (holds(small, "bfloat16")) return Format::bf16;
  if (holds(small, "half") || small == "float16") return Format::fp16;
  if (small == "double" || small == "float64") return Format::fp64;
  if (small == "float" || small == "float32") return tf32 ? Format::tf32 : Format::fp32;
  if (small == "char" || small == "signed char" || small == "int8") return Format::int8;
  return std::nullopt;
}

int bytes_of_type(std::string_view type) {
  const std::string small = lower_case(std::string(type));
  if (holds(small, "float8") || small == "byte" || small == "char" || small == "bool" ||
      holds(small, "int8"))
    return 1;
  if (holds(small, "bfloat16") || small == "half" || small == "float16" || small == "short")
    return 2;
  if (small == "float" || small == "float32" || small == "int" || small == "int32") return 4;
  if (small == "double" || small == "float64" || small == "long" || small == "int64") return 8;
  return 0;
}

bool is_product_operation(std::string_view name) {
  constexpr std::array<std::string_view, 8> names = {"aten::mm",
                                                     "aten::addmm",
                                                     "aten::bmm",
                                                     "aten::baddbmm",
                                                     "aten::_scaled_mm",
                                                     "aten::_grouped_mm",
                                                     "aten::_scaled_grouped_mm",
                                                     "aten::addmm_"};
  for (const std::string_view one : names)
    if (name == one) return true;
  return false;
}

}  // namespace orrery::observe
