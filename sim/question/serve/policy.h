// SPDX-License-Identifier: Apache-2.0
// Reads how an engine schedules and caches, where a question says so.
#pragma once

#include "sim/base/json/json.h"
#include "workloads/serving/engine_policy.h"
#include "workloads/traffic/traffic.h"

namespace orrery {

// Over what the stack's release does. Error at the setting for what its scheduler does not know.
void read_policy(const JsonValue& settings, EnginePolicy& policy);

// Error at block_tokens where shared texts of the traffic are no whole blocks.
void check_units(const JsonValue& settings, const Traffic& traffic, const EnginePolicy& policy);

}  // namespace orrery
