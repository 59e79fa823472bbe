// SPDX-License-Identifier: Apache-2.0
// Reads how an engine schedules and caches, where a question says so.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/outcome/serving/service.h"
#include "workloads/serving/engine_policy.h"
#include "workloads/traffic/traffic.h"

namespace orrery {

// Over what the stack's release does, as far as its scheduler knows the settings.
void read_policy(const JsonValue& settings, EnginePolicy& policy);

// A setting that changes nothing, and what was expected in its place.
struct UnusedSetting {
  std::string key, expected;
};
// Those of the question that neither its stack's scheduler nor its engines know.
std::vector<UnusedSetting> unused_settings(const JsonValue& settings, const ServiceCase& asked);

// Error at block_tokens where shared texts of the traffic are no whole blocks.
void check_units(const JsonValue& settings, const Traffic& traffic, const EnginePolicy& policy);

}  // namespace orrery
