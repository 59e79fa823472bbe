// SPDX-License-Identifier: Apache-2.0
// Holds what two streams of a rank do, and when they end.
#pragma once

#include <optional>

#include "sim/engine/collectives/collectives.h"

namespace orrery {

// Compute that runs first, then a collective that the stream waits for.
struct StreamItem {
  Seconds compute;
  std::optional<Collective> collective;
  bool operator==(const StreamItem&) const = default;
};

struct TwoStreams {
  Seconds main, side;              // ends when both start together
  Seconds main_alone, side_alone;  // ends without the other
  // Of the main stream; never negative: sharing may reorder, not speed up on average.
  Seconds main_delay() const { return std::max(Seconds(0), main - main_alone); }
  Seconds side_delay() const { return std::max(Seconds(0), side - side_alone); }
};

}  // namespace orrery
