// SPDX-License-Identifier: Apache-2.0
// Holds what one collective does to the network as it is wired.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "sim/engine/collectives/collectives.h"

namespace orrery {

// Layers of the network that a report tells apart, by the highest that a flow passes.
inline constexpr std::array network_layers = {"scale-up", "under one leaf", "across spines",
                                              "across cores", "between sites"};
inline constexpr auto network_layer_count = static_cast<int>(network_layers.size());

struct BusyLink {
  std::string name;
  double load = 0;   // share of its capacity that it carried, averaged over the transfer
  double links = 1;  // that are as busy
};

// What one collective does to the network when the job runs nothing else.
struct FlowPrice {
  // On this network, with its faults and background traffic: the slowest group's.
  CollectiveTime time;
  std::vector<CollectiveTime> by_stage;  // of each stage's slowest group; empty: all alike
  Seconds undisturbed;  // by the alpha-beta model alone: what the ideal network starts from
  std::array<double, network_layer_count> bytes{};  // by layer, of all ranks together
  std::vector<BusyLink> busiest;                    // at most three wires, busiest first
  std::size_t flows = 0, classes = 0;               // entries before and after folding
};

}  // namespace orrery
