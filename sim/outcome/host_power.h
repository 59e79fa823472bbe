// SPDX-License-Identifier: Apache-2.0
// Knows what hosts draw beside each accelerator while a job runs.
#pragma once

#include <cstdint>

#include "sim/engine/cluster.h"

namespace orrery {

// Mean power of a host over its accelerators: rated power at the cluster's host_load. Known to
// about a factor of two (host_load's range). 0 where host_power_known() is not so.
Watts host_power_per_accelerator(const Cluster& cluster);
// Of an accelerator and its share of its host, rounded.
std::int64_t milliwatts_with_host(Watts accelerator, const Cluster& cluster);
bool host_power_known(const Cluster& cluster);

}  // namespace orrery
