// SPDX-License-Identifier: Apache-2.0
// Knows how what-if conditions are written: faults, slow devices and other traffic.
#pragma once

#include "sim/base/json/json.h"
#include "sim/engine/conditions.h"
#include "sim/engine/scenario.h"

namespace orrery {

// Settings "network" ("ideal" or "flow"), "faults", "slow_gpus" and "background"; absent ones mean
// a healthy, empty cluster on the ideal network. Faults and traffic need the flow network: an Error
// otherwise, since the ideal one would ignore them. Shapes are in the README.
NetworkMode read_network(const JsonValue& settings);
Conditions read_conditions(const JsonValue& settings, const Cluster& cluster);

}  // namespace orrery
