// SPDX-License-Identifier: Apache-2.0
// Builds what the host costs a layer: dispatch, waits for it, launches of small kernels.
#include <algorithm>

#include "workloads/operations/layer_operations.h"

namespace orrery {

Seconds LayerOperations::host_time(double operations, const Segment& s) const {
  double collectives = 0;
  for (const Operation& o : s.operations)
    if (o.collective()) collectives += o.count;
  return stack_.host.dispatch.get() *
         (operations + collectives * stack_.host.operations.collective.get());
}

// A fused softmax needs batch * heads divisible by 4; without it eager kernels run.
bool LayerOperations::softmax_falls_back(const Mixer& mixer) const {
  return mixer.kind == MixerKind::attention && shape_.training &&
         stack_.host.softmax_fallback.get().si() > 0 &&
         (layout_.micro_batch * mixer.heads / layout_.tp) % 4 != 0;
}

void LayerOperations::host(LayerProgram& p, const LayerClass& layer) const {
  const HostOperations& ops = stack_.host.operations;
  const bool moe = layer.ffn.kind == FfnKind::moe;
  double forward = ops.layer_forward.get(), backward = ops.layer_backward.get();
  const LaunchMode launch = launch_mode(stack_, layout_);
  if (launch != LaunchMode::eager) forward = backward = 0;
  double moe_forward = 0, moe_backward = 0;
  if (moe && launch != LaunchMode::full_graph) {
    const auto local = static_cast<double>(local_experts(layer.ffn, layout_));
    moe_forward = ops.moe_forward.get() + local * ops.expert_forward.get();
    moe_backward = ops.moe_backward.get() + local * ops.expert_backward.get();
  }
  forward += moe_forward;
  backward += moe_backward;
  const Seconds fallback =
      softmax_falls_back(layer.mixer) ? stack_.host.softmax_fallback.get() : Seconds(0);
  p.forward.host_time = host_time(forward, p.forward) + fallback / 3;
  p.input_gradient.host_time = host_time(backward / 2, p.input_gradient) + fallback / 3;
  p.weight_gradient.host_time = host_time(backward / 2, p.weight_gradient);
  // The host reads the experts' token counts: the stream drains and refills, forward and backward
  // alike, and for a while the device runs out of what the host gives it.
  const Seconds sync =
      stack_.host.layer_sync.get() + (moe ? stack_.host.moe_sync.get() : Seconds(0));
  const Seconds late = stack_.host.sync_exposed.get() * stack_.host.dispatch.get();
  for (Segment* s : {&p.forward, &p.input_gradient, &p.weight_gradient}) {
    const Seconds behind = late * (s == &p.forward ? moe_forward : moe_backward);
    wait(*s, s == &p.weight_gradient ? Seconds(0) : sync / 2 + behind);
  }
}

// The device waits for the host, for all of its time where launches block.
void LayerOperations::wait(Segment& s, Seconds time) const {
  if (stack_.host.blocking_launches) time += s.host_time;
  if (!shape_.training || time <= Seconds(0)) return;
  s.operations.push_back({.label = Label::host, .work = HostWait{time}});
}

// What a framework launches besides: each costs its start. The traffic of one is a page of memory.
void LayerOperations::small_kernels(LayerProgram& p) const {
  constexpr double page = 4096;
  const auto add = [&](Segment& s, double count) {
    if (count <= 0) return;
    Operation o{.label = Label::elementwise, .count = count};
    o.work =
        Kernel{.work = {.kind = WorkKind::elementwise, .bytes_read = page, .bytes_written = page},
               .library = stack_.kernels.stream_library()};
    s.operations.push_back(o);
  };
  add(p.forward, stack_.kernels.small_kernels_forward.get());
  add(p.input_gradient, stack_.kernels.small_kernels_backward.get());
}

}  // namespace orrery
