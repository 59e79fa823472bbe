// SPDX-License-Identifier: Apache-2.0
// Knows how one scale-up domain is drawn: switched, mesh, torus, or none.
#pragma once

#include <cstdint>

#include "sim/paper/svg.h"
#include "topologies/parts.h"

namespace orrery {

// Colours of rails, repeated after eight; distinct for colour-blind eyes too.
const char* rail_colour(std::int64_t rail);

// The rail of an accelerator's (first) NIC, and the colour that it has for that.
std::int64_t rail_of(const Fabric& fabric, std::int64_t rails, std::int64_t accelerator);
const char* accelerator_colour(const Fabric& fabric, std::int64_t rails, std::int64_t accelerator);

// Fills `area` with one domain of the fabric, counts and rates of its links at the bottom.
void draw_domain(Svg& svg, const Box& area, const Fabric& fabric, const FabricParts& parts);

}  // namespace orrery
