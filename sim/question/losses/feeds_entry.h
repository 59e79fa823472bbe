// SPDX-License-Identifier: Apache-2.0
// Reads the feeds of power above the hosts of a cluster.
#pragma once

#include "sim/base/json/json.h"
#include "sim/engine/power/power_feed.h"
#include "topologies/slots.h"

namespace orrery {

// {"facility": {"limit": "20 MW"}, "halls": {"count": 2, "limit": "9 MW", "redundancy": "2N"},
// "rows": {"hosts": 32, "limit": "400 kW", "share_left": 0.75}, "racks": {"hosts": 4, "limit":
// ..}}, each as wanted. Errors: levels that do not nest, limits below what idle hosts draw
// (`idle_milliwatts` an accelerator).
FeedTree read_feeds(const JsonValue& at, const SlotShape& shape, std::int64_t idle_milliwatts);

}  // namespace orrery
