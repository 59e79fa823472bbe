// SPDX-License-Identifier: Apache-2.0
// Finds what two streams of a rank cost each other when their collectives meet on the network.
#pragma once

#include <span>

#include "sim/engine/network/flow_network.h"
#include "sim/engine/network/streams.h"

namespace orrery {

// Runs both on `network`, which must be idle; simulated time goes on from where it stands. A
// network that many places have in common (FlowMemory) remembers them.
TwoStreams run_streams(std::span<const StreamItem> main, std::span<const StreamItem> side,
                       FlowNetwork& network);

}  // namespace orrery
