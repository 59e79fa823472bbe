// SPDX-License-Identifier: Apache-2.0
// Builds linear layers: their three products, adapters and the sum of gradients.
#include <algorithm>

#include "workloads/operations/layer_operations.h"

namespace orrery {

// A gradient of `elements` is added to that of the microbatches before it by a kernel of its own
// where products do not do so themselves. The first microbatch of a step has nothing to add to.
void LayerOperations::accumulate(Segment& s, double elements, Label label) const {
  const auto microbatches = static_cast<double>(layout_.microbatches(job_));
  const bool sharded = layout_.zero_stage == 3 && layout_.dense_replicas() > 1;
  if (stack_.kernels.fused_gradient_accumulation || sharded || microbatches <= 1) return;
  const double kept = bytes_per_element(stack_.sharding.gradient_storage);
  const double moved = elements * stack_.kernels.accumulate_passes.get();
  Operation o{.label = label, .count = (microbatches - 1) / microbatches};
  o.work = Kernel{.work = {.kind = WorkKind::elementwise,
                           .bytes_read = moved * (2 + kept),
                           .bytes_written = moved * kept},
                  .library = Library::fused};
  s.operations.push_back(o);
}

Kernel LayerOperations::square_product(std::int64_t side) const {
  return {.work = {.kind = WorkKind::gemm,
                   .input = plain_format(),
                   .output = Format::bf16,
                   .m = side,
                   .n = side,
                   .k = side},
          .library = stack_.kernels.gemm};
}

std::int64_t LayerOperations::cut(std::int64_t rows, std::int64_t pieces) const {
  return shape_.training && rows % pieces == 0 ? pieces : 1;
}

void LayerOperations::forward_linear(Segment& s, const Linear& l, Label label) const {
  const Format format = l.quantised ? linear_format() : plain_format();
  if (l.quantised)
    quantise(s, static_cast<double>((l.gathered ? shape_.norm_tokens : l.m) * l.k), l.gathered);
  const std::int64_t pieces = l.gathered    ? cut(l.m, gathered_pieces(stack_, layout_))
                              : l.scattered ? cut(l.m, scattered_pieces(stack_, layout_))
                                            : 1;
  Operation o{.label = label, .count = static_cast<double>(pieces)};
  o.work = Kernel{.work = {.kind = WorkKind::gemm,
                           .input = format,
                           .output = Format::bf16,
                           .block_scales = l.quantised && block_scales(),
                           .m = l.m / pieces,
                           .n = l.n,
                           .k = l.k},
                  .library = stack_.kernels.gemm};
  s.operations.push_back(o);
  forward_adapter(s, l, label);
}

// The adapter of a linear layer whose input or output tensor parallelism splits so, if the job and
// the stack give it one.
LayerOperations::Adapter LayerOperations::adapter(Adapter kind, AdapterSites site) const {
  const bool has = stack_.kernels.adapter_sites == AdapterSites::every_linear ||
                   site == AdapterSites::query_key_value;
  return job_.task == Task::lora && has ? kind : Adapter::none;
}

// An adapter's output joins its layer's, or its input's gradient the layer's: a kernel reads both
// and writes the sum.
void LayerOperations::add_output(Segment& s, std::int64_t elements) const {
  const double moved = 2.0 * static_cast<double>(elements) * stack_.kernels.adapter_passes.get();
  if (moved <= 0) return;
  Operation o{.label = Label::elementwise};
  o.work = Kernel{
      .work = {.kind = WorkKind::elementwise, .bytes_read = 2 * moved, .bytes_written = moved},
      .library = stack_.kernels.stream_library()};
  s.operations.push_back(o);
}

// Outputs of both factors on this rank (Megatron-Bridge's peft/utils.py, ParallelLinearAdapter).
LayerOperations::AdapterWidths LayerOperations::adapter_widths(const Linear& l) const {
  const auto part = [&](std::int64_t width, bool split) {
    return std::max<std::int64_t>(1, split ? width / layout_.tp : width);
  };
  return {.a = part(job_.lora_rank, l.adapter == Adapter::columns),
          .b = part(l.n, l.adapter == Adapter::rows)};
}

// y += B (A x), two thin products in 16 bits.
void LayerOperations::forward_adapter(Segment& s, const Linear& l, Label label) const {
  if (l.adapter == Adapter::none) return;
  const AdapterWidths w = adapter_widths(l);
  const auto product = [&](std::int64_t n, std::int64_t k) {
    Operation o{.label = label};
    o.work = Kernel{.work = {.kind = WorkKind::gemm,
                             .input = plain_format(),
                             .output = Format::bf16,
                             .m = l.m,
                             .n = n,
                             .k = k},
                    .library = stack_.kernels.gemm};
    s.operations.push_back(o);
  };
  product(w.a, l.k);
  product(w.b, job_.lora_rank);
  add_output(s, l.m * l.n);
}

// Gradients of A x, of x, of B and of A.
void LayerOperations::backward_adapter(LayerProgram& p, const Linear& l, Label label) const {
  if (l.adapter == Adapter::none) return;
  const AdapterWidths w = adapter_widths(l);
  const auto product = [&](Segment& s, GemmRole role, std::int64_t m, std::int64_t n,
                           std::int64_t k) {
    Operation o{.label = label};
    o.work =
        Kernel{.work = {.kind = WorkKind::gemm,
                        .input = plain_format(),
                        .output = Format::bf16,
                        .role = role,
                        .accumulate_fp32 = role == GemmRole::weight_gradient && accumulates_fp32(),
                        .m = m,
                        .n = n,
                        .k = k},
               .library = stack_.kernels.gemm};
    s.operations.push_back(o);
  };
  product(p.input_gradient, GemmRole::input_gradient, l.m, job_.lora_rank, w.b);
  product(p.input_gradient, GemmRole::input_gradient, l.m, l.k, w.a);
  add_output(p.input_gradient, l.m * l.k);
  product(p.weight_gradient, GemmRole::weight_gradient, w.b, job_.lora_rank, l.m);
  product(p.weight_gradient, GemmRole::weight_gradient, w.a, l.k, l.m);
  accumulate(p.weight_gradient, static_cast<double>(w.b * job_.lora_rank + w.a * l.k), label);
}

void LayerOperations::backward_linear(LayerProgram& p, const Linear& l, Label label,
                                      bool frozen) const {
  const Format format = l.quantised ? linear_format() : plain_format();
  if (l.quantised)
    quantise(p.input_gradient, static_cast<double>((l.scattered ? shape_.norm_tokens : l.m) * l.n),
             l.scattered);
  // The output's gradient is gathered as the input is forward; the reduce-scatter of the input's
  // gradient runs beside the whole product ("bulk").
  const std::int64_t pieces = l.scattered ? cut(l.m, gathered_pieces(stack_, layout_)) : 1;
  Operation dgrad{.label = label, .count = static_cast<double>(pieces)};
  dgrad.work = Kernel{.work = {.kind = WorkKind::gemm,
                               .input = format,
                               .output = Format::bf16,
                               .role = GemmRole::input_gradient,
                               .block_scales = l.quantised && block_scales(),
                               .m = l.m / pieces,
                               .n = l.k,
                               .k = l.n},
                      .library = stack_.kernels.gemm};
  p.input_gradient.operations.push_back(dgrad);
  backward_adapter(p, l, label);
  if (frozen) return;
  if (l.quantised && l.gathered) transpose_copy(p.weight_gradient, static_cast<double>(l.m * l.k));
  if (l.quantised && l.scattered) transpose_copy(p.weight_gradient, static_cast<double>(l.m * l.n));
  Operation wgrad{.label = label};
  wgrad.work = Kernel{.work = {.kind = WorkKind::gemm,
                               .input = format,
                               .output = Format::bf16,
                               .role = GemmRole::weight_gradient,
                               .accumulate_fp32 = accumulates_fp32(),
                               .block_scales = l.quantised && block_scales(),
                               .m = l.n,
                               .n = l.k,
                               .k = l.m},
                      .library = stack_.kernels.gemm};
  p.weight_gradient.operations.push_back(wgrad);
  accumulate(p.weight_gradient, static_cast<double>(l.n * l.k), label);
}

}  // namespace orrery
