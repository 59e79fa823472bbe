// SPDX-License-Identifier: Apache-2.0
// Reads what is to happen to a cluster, and when: a list of incidents.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/engine/jobs/incidents.h"
#include "sim/engine/power/power_feed.h"
#include "topologies/slots.h"

namespace orrery {

// A list, the file that holds one, or {"name", "text"} of what that file held:
// [{"at": "100 h", "for": "6 h", "what": "leaf", "which": 12}, {.., "what": "host", "hosts":
// "16-23", "drain": true, "announced": "24 h"}]. Errors: parts that the cluster does not have (with
// how many there are), times below 0 or beyond 1,000 years.
// A feed of power that is lost, "what": "feed", "which": "hall 1", takes its hosts, or what it
// loses of its limit.
std::vector<Incident> read_incidents(const JsonValue& at, const SlotShape& shape,
                                     const FeedTree& feeds);

// A list that stands in a file, or the value itself.
JsonValue held_list(const JsonValue& at);

}  // namespace orrery
