// SPDX-License-Identifier: Apache-2.0
// Knows how a wiring is drawn: layers of boxes as SVG, and a graph for Graphviz.
#pragma once

#include <string>

#include "topologies/parts.h"

namespace orrery {

// A self-contained SVG of 1600 x 900: one scale-up domain, and the tiers above it with rails as
// colours, planes as shadows, counts and rates beside the edges. Repeated parts are drawn once or
// twice with an ellipsis between them.
std::string topology_svg(const Fabric& fabric, const FabricParts& parts, const std::string& title);

// The scheme as Graphviz text: a node for every group of switches and every domain (the rest of
// long rows is one node), an edge for every bundle of cables.
std::string topology_dot(const Fabric& fabric, const FabricParts& parts);

}  // namespace orrery
