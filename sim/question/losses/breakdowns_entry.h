// SPDX-License-Identifier: Apache-2.0
// Reads what breaks on a cluster by itself: a profile of reliability, spares, crews, lemons.
#pragma once

#include <optional>

#include "hw_models/reliability.h"
#include "sim/base/json/json.h"
#include "sim/engine/cluster.h"
#include "sim/engine/jobs/breakdowns.h"
#include "topologies/slots.h"

namespace orrery {

// Settings reliability and failure_rate; nothing: nothing fails. Error: settings of what breaks
// without it.
std::optional<ReliabilityProfile> read_profile(const JsonValue& settings);

// Settings spares, repair_crews, lemons, lemon_failures, lemon_time beside that profile. Errors:
// spares that are no whole hosts, lemons of a profile that knows none.
BreakdownPlan read_breakdowns(const JsonValue& settings, const ReliabilityProfile& profile,
                              const Cluster& cluster, const SlotShape& shape);

}  // namespace orrery
