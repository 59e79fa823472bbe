// SPDX-License-Identifier: Apache-2.0
// Makes a network that closed forms describe: every rank has one port, and nothing else costs.
#pragma once

#include <string>
#include <vector>

#include "sim/chakra/trace.h"
#include "sim/engine/cluster.h"

namespace orrery::test {

// A message of S bytes takes latency + S / bandwidth; a ring's call costs `call` besides.
inline Cluster simple_network(std::int64_t ranks, Seconds latency, BytesPerSecond bandwidth,
                              Seconds call = Seconds(0)) {
  Cluster c = load_cluster("dgx-h100", ranks);
  c.name = "simple";
  c.fabric.scale_up.domain = 1;
  ScaleOut& out = c.fabric.scale_out;
  out.nics_per_accelerator.value = 1;
  out.nic_bandwidth.value = bandwidth;
  out.nic_latency.value = latency;
  out.efficiency.value = 1;
  out.tiers.resize(1);
  out.kind = ScaleOutKind::fat_tree;
  out.rails = 1;
  out.tiers[0].radix = 1024;
  out.tiers[0].reach = 0;
  out.tiers[0].latency.value = Seconds(0);
  out.tiers[0].oversubscription.value = 1;
  c.collective_costs = CollectiveCosts();
  c.collective_costs.name = "simple";
  const auto plain = [&](StepCosts& steps) {
    steps.present = true;
    steps.base.value = Seconds(0);
  };
  const int simple = static_cast<int>(CollectiveProtocol::simple);
  StepCosts& ring = c.collective_costs.steps[static_cast<int>(CollectiveAlgorithm::ring)][simple];
  plain(ring);
  ring.base.value = call;
  plain(c.collective_costs.steps[static_cast<int>(CollectiveAlgorithm::direct)][simple]);
  plain(c.collective_costs.send[simple]);
  return c;
}

// The same nodes on every rank.
inline Traces same_on_all(std::size_t ranks, const std::vector<TraceNode>& nodes) {
  Traces traces;
  for (std::size_t i = 0; i < ranks; ++i)
    traces.ranks.push_back({.file = "t." + std::to_string(i) + ".et", .nodes = nodes});
  return traces;
}

}  // namespace orrery::test
