// SPDX-License-Identifier: Apache-2.0
// Finds what two streams of a rank cost each other when their collectives meet on the network.
#pragma once

#include <optional>
#include <span>

#include "sim/engine/network/flow_network.h"

namespace orrery {

// Compute that runs first, then a collective that the stream waits for.
struct StreamItem {
  Seconds compute;
  std::optional<Collective> collective;
};

struct TwoStreams {
  Seconds main, side;              // ends when both start together
  Seconds main_alone, side_alone;  // ends without the other
  // Of the main stream; never negative: sharing may reorder, not speed up on average.
  Seconds main_delay() const { return std::max(Seconds(0), main - main_alone); }
  Seconds side_delay() const { return std::max(Seconds(0), side - side_alone); }
};

// Runs both on `network`, which must be idle; simulated time goes on from where it stands.
TwoStreams run_streams(std::span<const StreamItem> main, std::span<const StreamItem> side,
                       FlowNetwork& network);

}  // namespace orrery
