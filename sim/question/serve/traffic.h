// SPDX-License-Identifier: Apache-2.0
// Reads who asks a served model for what: arrivals, lengths, traces, kinds of requests, sessions.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "workloads/serving/engine_policy.h"
#include "workloads/traffic/traffic.h"

namespace orrery {

// Lengths and arrivals. A trace brings both, unless others are given; `for` is Poisson at its rate.
// The priorities of its classes go to the policy. Error: values that contradict each other.
Traffic read_traffic(const JsonValue& settings, EnginePolicy& policy);

// Arrivals of the load that `for` asks for: "50/s", "poisson:50/s", "gamma:50/s:3".
Arrivals load_arrivals(const JsonValue& at);

// The question with what traces of users' files hold, {"name", "text"}, in place of their names, so
// that it stands alone; those of the catalogue stay names, and so does what is above 16 MiB.
JsonValue with_traces_inline(const JsonValue& settings);

// Names of the kinds of requests.
std::vector<std::string> class_names(const Traffic& traffic);

}  // namespace orrery
