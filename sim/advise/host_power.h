// Knows what hosts draw beside each accelerator while a job runs.
#pragma once

#include "sim/engine/cluster.h"

namespace orrery {

// Mean power of a host over its accelerators: rated power at the load that bills use (economics
// "standard"). Known to about a factor of two (host_load's range). 0 where the host's power is not
// known.
Watts host_power_per_accelerator(const Cluster& cluster);

}  // namespace orrery
