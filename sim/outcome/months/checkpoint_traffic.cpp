// SPDX-License-Identifier: Apache-2.0
// Prices a step beside a checkpoint's flow.
#include "sim/outcome/months/checkpoint_traffic.h"

#include <algorithm>

#include "sim/engine/step/step.h"

namespace orrery {
namespace {

// Share of a resource that is left beside a flow.
double left_beside(double flow, double capacity) {
  return capacity > 0 ? 1 - std::min(flow / capacity, 0.5) : 1;
}

template <class Q>
void scale(Sourced<Q>& value, double by) {
  if (value.known()) *value.value *= by;
}

}  // namespace

double slowed_by(const Scenario& s, Seconds undisturbed, const CheckpointFlow& flow) {
  Cluster disturbed = s.cluster;
  ScaleOut& out = disturbed.fabric.scale_out;
  const double nics = out.nic_bandwidth.value.value_or(BytesPerSecond{}).si() *
                      out.nics_per_accelerator.value.value_or(0);
  const double memory = disturbed.host.memory_bandwidth.value.value_or(BytesPerSecond{}).si() /
                        static_cast<double>(std::max<std::int64_t>(1, disturbed.gpus_per_host));
  const double network_left = left_beside(flow.network.si(), nics);
  const double memory_left = left_beside(flow.memory.si(), memory);
  if (network_left >= 1 && memory_left >= 1) return 0;
  scale(out.nic_bandwidth, network_left);
  scale(disturbed.host.memory_bandwidth, memory_left);
  const StepContext context = step_context(disturbed);
  const StepResult slow = step(context, s.model, s.job, s.layout, s.stack);
  constexpr double most = 0.5;  // nothing takes more than half of anything
  return std::clamp(1 - undisturbed / to_seconds(slow.step), 0.0, most);
}

}  // namespace orrery
