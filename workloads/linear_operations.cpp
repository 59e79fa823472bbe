// Builds linear layers: their three products, adapters and the sum of gradients.
#include "workloads/layer_operations.h"

namespace orrery {

// A gradient of `elements` is added to that of the microbatches before it by a kernel of its own
// where products do not do so themselves. The first microbatch of a step has nothing to add to.
void LayerOperations::accumulate(Segment& s, double elements, Label label) const {
  const auto microbatches = static_cast<double>(layout_.microbatches(job_));
  const bool sharded = layout_.zero_stage == 3 && layout_.dense_replicas() > 1;
  if (stack_.fused_gradient_accumulation || sharded || microbatches <= 1) return;
  const double kept = bytes_per_element(stack_.gradient_storage);
  const double moved = elements * stack_.accumulate_passes.get();
  Operation o{.label = label, .count = (microbatches - 1) / microbatches};
  o.kernel = {.work = {.kind = WorkKind::elementwise,
                       .bytes_read = moved * (2 + kept),
                       .bytes_written = moved * kept},
              .library = Library::fused};
  s.operations.push_back(o);
}

void LayerOperations::forward_linear(Segment& s, const Linear& l, Label label) const {
  const Format format = l.quantised ? linear_format() : plain_format();
  if (l.quantised)
    quantise(s, static_cast<double>((l.gathered ? shape_.norm_tokens : l.m) * l.k), l.gathered);
  Operation o{.label = label};
  o.kernel = {.work = {.kind = WorkKind::gemm,
                       .input = format,
                       .output = Format::bf16,
                       .m = l.m,
                       .n = l.n,
                       .k = l.k},
              .library = stack_.gemm};
  s.operations.push_back(o);
  if (l.quantised)
    adapter(s, 2.0 * static_cast<double>(l.m * (l.k + l.n)), 2.0 * static_cast<double>(l.m * l.n));
}

// The kernels of a linear layer's adapter: its products are thin, their cost is traffic. Forward
// reads the input and adds to the output; backward reads the output's gradient for each factor and
// the input, and adds to the input's gradient.
void LayerOperations::adapter(Segment& s, double read, double written) const {
  const double passes = stack_.adapter_passes.get();
  if (job_.task != Task::lora || passes <= 0) return;
  Operation o{.label = Label::elementwise};
  o.kernel = {.work = {.kind = WorkKind::elementwise,
                       .bytes_read = read * passes,
                       .bytes_written = written * passes},
              .library = stack_.stream_library()};
  s.operations.push_back(o);
}

void LayerOperations::backward_linear(LayerProgram& p, const Linear& l, Label label,
                                      bool frozen) const {
  const Format format = l.quantised ? linear_format() : plain_format();
  if (l.quantised)
    quantise(p.input_gradient, static_cast<double>((l.scattered ? shape_.norm_tokens : l.m) * l.n),
             l.scattered);
  Operation dgrad{.label = label};
  dgrad.kernel = {.work = {.kind = WorkKind::gemm,
                           .input = format,
                           .output = Format::bf16,
                           .role = GemmRole::input_gradient,
                           .m = l.m,
                           .n = l.k,
                           .k = l.n},
                  .library = stack_.gemm};
  p.input_gradient.operations.push_back(dgrad);
  if (l.quantised)
    adapter(p.input_gradient, 2.0 * static_cast<double>(l.m * (2 * l.n + 2 * l.k)),
            2.0 * static_cast<double>(l.m * l.k));
  if (frozen) return;
  if (l.quantised && l.gathered) transpose_copy(p.weight_gradient, static_cast<double>(l.m * l.k));
  if (l.quantised && l.scattered) transpose_copy(p.weight_gradient, static_cast<double>(l.m * l.n));
  Operation wgrad{.label = label};
  wgrad.kernel = {.work = {.kind = WorkKind::gemm,
                           .input = format,
                           .output = Format::bf16,
                           .role = GemmRole::weight_gradient,
                           .accumulate_fp32 = accumulates_fp32(),
                           .m = l.n,
                           .n = l.k,
                           .k = l.m},
                  .library = stack_.gemm};
  p.weight_gradient.operations.push_back(wgrad);
  accumulate(p.weight_gradient, static_cast<double>(l.n * l.k), label);
}

}  // namespace orrery
