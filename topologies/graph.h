// SPDX-License-Identifier: Apache-2.0
// Knows a wiring as a graph: every part by itself for tests and pictures, or one vertex per kind.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <string>

#include "topologies/parts.h"

namespace orrery {

struct FabricVertex {
  std::string role;  // "accelerator", "nic", "host" (a PCIe root), or a switch's as in parts.h;
                     // "spare": a point of a torus slice that no accelerator was asked of
  std::string part;  // of switches and NICs; may be empty
  std::int64_t count = 1;  // scheme_graph: how many of the kind
};

// Parallel cables between two vertices: a bundle.
struct FabricEdge {
  std::int64_t links = 1;   // cables as CableRun counts them; 0: no cable (inside a host or a site)
  BytesPerSecond rate;      // of one of them, per direction
  BytesPerSecond capacity;  // of all of them, per direction
  bool scale_up = false;    // inside a domain
  bool cable = true;        // false: inside a host (accelerator to NIC, PCIe) or a site
  Medium medium = Medium::copper;
};

using FabricGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, FabricVertex, FabricEdge>;

// Every accelerator (vertices 0 to n - 1), NIC and switch, with the links of ClosShape, LeafPlan
// and ScaleUpShape. Optical circuit switches are no vertices: their circuits join accelerators.
// Dragonfly+: a group deals its global links out to the other groups in turn, over its spines.
// Error above `largest_full_graph` vertices, or when the fabric cannot join so many.
constexpr std::int64_t largest_full_graph = 20000;
FabricGraph full_graph(const Fabric& fabric, std::int64_t accelerators);

// One vertex per kind of part and one edge per kind of link, with their numbers: fabric_parts as a
// picture, at any size. Links among equals (torus, mesh, dragonfly groups, sites) are loops.
FabricGraph scheme_graph(const Fabric& fabric, std::int64_t accelerators);

}  // namespace orrery
