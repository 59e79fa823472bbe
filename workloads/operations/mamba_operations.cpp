// SPDX-License-Identifier: Apache-2.0
// Builds the operations of Mamba-2 layers: projections, convolution, scan in chunks, gated norm.
#include <algorithm>

#include "sim/base/whole.h"
#include "workloads/operations/layer_operations.h"

namespace orrery {
namespace {

// Tokens of a chunk in Megatron-Core's mixer and in Nemotron's configurations.
constexpr std::int64_t scan_chunk = 128;

}  // namespace

LayerOperations::MambaWidths LayerOperations::mamba_widths(const Mixer& mixer) const {
  const std::int64_t tp = layout_.tp;
  return {.inner = split(mixer.inner, tp),
          .heads = split(mixer.heads, tp),
          .states = split(2 * mixer.groups * mixer.state, tp)};
}

// Kernels of their own, which no pass of the stack's element-wise ones times. `operations` are of
// the fp32 units, `count` is how many kernels share the work.
void LayerOperations::mamba_kernel(Segment& s, Label label, double read, double written,
                                   double operations, double count) const {
  Operation o{.label = label, .count = count};
  o.work = Kernel{.work = {.kind = WorkKind::elementwise,
                           .bytes_read = read / count,
                           .bytes_written = written / count,
                           .vector_flop = operations / count},
                  .library = stack_.kernels.memory_bound};
  s.operations.push_back(o);
}

// The convolution is four tokens wide, with SiLU. The norm takes the scan's output and the gate.
// Backward runs the convolution again and writes the norm's output again, as the memory-saving path
// of mamba_ssm does.
void LayerOperations::mamba_around_scan(LayerProgram& p, const Mixer& mixer) const {
  const MambaWidths w = mamba_widths(mixer);
  const auto tokens = static_cast<double>(shape_.tokens);
  const double channels = tokens * static_cast<double>(w.inner + w.states);
  const double inner = tokens * static_cast<double>(w.inner);
  const double forward = stack_.kernels.scan.convolution.get() * channels;
  const double backward = stack_.kernels.scan.convolution_backward.get() * channels;
  mamba_kernel(p.forward, Label::elementwise, 2 * channels, 2 * channels, forward, 1);
  mamba_kernel(p.forward, Label::elementwise, 4 * inner, 2 * inner, 0, 1);
  if (!shape_.training) return;
  mamba_kernel(p.input_gradient, Label::elementwise, 2 * channels, 2 * channels, forward, 1);
  mamba_kernel(p.input_gradient, Label::elementwise, 4 * channels, 2 * channels, backward, 1);
  mamba_kernel(p.input_gradient, Label::elementwise, 6 * inner, 6 * inner,
               stack_.kernels.scan.norm_backward.get() * inner, 1);
}

// The scan's kernels keep a state a chunk in fp32. Passing it on from chunk to chunk crosses the
// memory; all others are paced by the processors. Backward makes the states again.
void LayerOperations::mamba_scan(LayerProgram& p, const Mixer& mixer) const {
  const MambaWidths w = mamba_widths(mixer);
  const auto inner = static_cast<double>(w.inner), state = static_cast<double>(mixer.state);
  const auto sequences = static_cast<double>(shape_.sequences);
  if (shape_.decode) {
    const double bytes = 4 * static_cast<double>(shape_.tokens) * inner * state;
    mamba_kernel(p.forward, Label::attention, bytes, bytes, 0, 1);
    return;
  }
  const double chunks = sequences * static_cast<double>(ceil_div(shape_.q_length, scan_chunk));
  const double states = 4 * chunks * inner * state;
  const auto tokens = static_cast<double>(shape_.tokens);
  const auto operations = [&](const ScanPass& pass) {
    return tokens * (inner * (pass.channel.get() + pass.state.get() * state) +
                     static_cast<double>(w.states) / 2 * pass.group.get());
  };
  // Kernels of a pass, as a profile lists them.
  constexpr double forward_kernels = 4, backward_kernels = 27;
  const ScanCost& cost = stack_.kernels.scan;
  mamba_kernel(p.forward, Label::attention, 0, 0, operations(cost.forward), forward_kernels);
  mamba_kernel(p.forward, Label::attention, states, states, 0, 1);
  if (!shape_.training) return;
  mamba_kernel(p.input_gradient, Label::attention, 0, 0, operations(cost.backward),
               backward_kernels);
  mamba_kernel(p.input_gradient, Label::attention, 3 * states, 3 * states, 0, 2);
}

// Mamba-2 (Dao and Gu, 2024): one wide input projection, a short convolution, the state-space scan
// in chunks, a gated norm and the output projection.
void LayerOperations::mamba(LayerProgram& p, const Mixer& mixer) const {
  const bool frozen = job_.task == Task::lora;
  const std::int64_t t = shape_.tokens;
  const MambaWidths w = mamba_widths(mixer);
  const bool split_rows = shape_.sequence_parallel;
  const Linear in{.m = t,
                  .n = 2 * w.inner + w.states + w.heads,
                  .k = model_.hidden,
                  .gathered = split_rows,
                  .adapter = adapter(Adapter::columns)};
  const Linear out{.m = t,
                   .n = model_.hidden,
                   .k = w.inner,
                   .scattered = split_rows,
                   .adapter = adapter(Adapter::rows)};
  tensor_enter(p);
  forward_linear(p.forward, in, Label::gemm);
  if (layout_.cp > 1)
    trade_heads(p, GroupKind::context, static_cast<double>(t * in.n),
                static_cast<double>(t * w.inner));
  mamba_around_scan(p, mixer);
  mamba_scan(p, mixer);
  forward_linear(p.forward, out, Label::gemm);
  backward_linear(p, out, Label::gemm, frozen);
  backward_linear(p, in, Label::gemm, frozen);
  tensor_leave(p);
}

}  // namespace orrery
