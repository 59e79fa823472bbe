// SPDX-License-Identifier: Apache-2.0
// Knows what a training sends over the links above leaf groups and pods that have too few of them.
#pragma once

#include <vector>

#include "sim/engine/fleet/fleet_question.h"
#include "sim/engine/prices/place_steps.h"
#include "topologies/slots.h"

namespace orrery {

// By level of the shape. Empty where the fabric has links for all or hashes nothing away: jobs then
// do not meet. What a step sends is taken from its flows, spread evenly over the job's hosts. Of
// the time in which a kind of traffic is sent, that part counts as waited for which shows in the
// step.
std::vector<TrunkTraffic> trunk_traffic(PlaceSteps& steps, const ScatteredRanks& ranks,
                                        const SlotShape& shape);

}  // namespace orrery
