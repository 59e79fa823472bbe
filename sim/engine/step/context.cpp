// SPDX-License-Identifier: Apache-2.0
// Resolves a cluster or a scenario to the plain numbers of a step.
#include "sim/engine/step/context.h"

#include <algorithm>

#include "hw_models/boards.h"

namespace orrery {

StepContext step_context(const Cluster& cluster) {
  StepContext context{.fabric = cluster.fabric,
                      .collective_costs = cluster.collective_costs,
                      .device = cluster.device.resolved(),
                      .calibration = cluster.calibration,
                      .clock_factor = cluster.site.clock_factor.get()};
  const auto sharing = static_cast<double>(std::max<std::int64_t>(1, cluster.gpus_per_host));
  context.host_memory_bandwidth =
      cluster.host.memory_bandwidth.value.value_or(BytesPerSecond()) / sharing;
  context.device.host_memory = cluster.host.memory.value.value_or(Bytes()) / sharing;
  scale_clock(context.device, context.clock_factor);
  return context;
}

StepContext step_context(const Scenario& scenario) {
  StepContext context = step_context(scenario.cluster);
  context.network = scenario.network;
  context.conditions = scenario.conditions;
  if (!scenario.ranks.contiguous()) context.ranks = &scenario.ranks;
  return context;
}

StepContext contiguous_context(const StepContext& scattered) {
  StepContext context = scattered;
  context.ranks = nullptr;
  context.conditions = {.seed = scattered.conditions.seed};
  return context;
}

}  // namespace orrery
