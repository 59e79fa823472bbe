// SPDX-License-Identifier: Apache-2.0
// Prices a collective that a job runs alone on the network as it is wired.
#pragma once

#include "sim/base/units/ticks.h"
#include "sim/engine/conditions.h"
#include "sim/engine/flows/ground.h"
#include "sim/engine/network/flow_price.h"
#include "sim/engine/network/laid_flows.h"

namespace orrery {

// Folded, a healthy sprayed fabric is first shortened to what does not repeat (short_job.h).
FlowPrice flow_price(const Collective& collective, const Fabric& fabric,
                     const CollectiveCosts& costs, const JobGround& job,
                     const Conditions& conditions, const FlowOptions& options = {});

// The same without what only reports read, of flows that are perhaps laid out.
FlowPrice ends_price(const Collective& collective, const Fabric& fabric,
                     const CollectiveCosts& costs, const JobGround& job,
                     const Conditions& conditions, const FlowOptions& options, LaidFlows& flows);

// What a collective waits before its flows begin.
Ticks flow_latency(const CollectiveTime& alone);

}  // namespace orrery
