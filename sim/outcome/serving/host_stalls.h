// SPDX-License-Identifier: Apache-2.0
// Says how often and for how long the operating system keeps an engine's host from launching.
#pragma once

#include "sim/engine/serving/rank.h"
#include "workloads/stack/serving.h"

namespace orrery {

// Of an engine whose host needs so long to launch a step kernel by kernel: the longer it launches,
// the likelier it is interrupted.
HostStalls host_stalls(const StackServing& serving, Ticks launching);

}  // namespace orrery
