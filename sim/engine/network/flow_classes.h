// SPDX-License-Identifier: Apache-2.0
// Makes classes of flows that nothing tells apart, where there are any.
#pragma once

#include <vector>

#include "sim/engine/flows/clock.h"
#include "sim/engine/flows/ground.h"
#include "sim/engine/flows/symmetry.h"

namespace orrery {

// Every flow and link by itself.
Folded unfolded(const FlowTable& table);

// fold() of a table of the ground's flows, or every flow by itself where it is hardly worth it.
// Rates are the same.
Folded classes_of(const FlowGround& ground, const FlowTable& table);

// The first flow of every class of a range.
std::vector<FlowIndex> one_of_each(const Folded& folded, const FlowRange& range);

void start_background(const FlowTable& table, FlowClock& clock, Ticks now);

// Bytes that the shares of a collective's flows refer to.
double rank_bytes(const FlowRange& range, const CollectiveTime& alone);

}  // namespace orrery
