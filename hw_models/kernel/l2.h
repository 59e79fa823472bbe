// SPDX-License-Identifier: Apache-2.0
// Tells how much of a kernel's traffic an L2 cache still holds from what ran before.
#pragma once

#include <algorithm>

#include "sim/base/units/units.h"

namespace orrery {

// Share of the cache that holds what a kernel reads again of the kernel before it: the other half
// holds its own results.
inline constexpr double l2_for_operands = 0.5;
// Share below which a kernel that is replayed alone and writes next to nothing (decode over its
// keys) finds all of them again: H200 reads 33 MB of its 63 MB at 8 TB/s and 67 MB at 4. Half of
// the cache and what a call's own rows may shift.
inline constexpr double l2_for_replays = 0.58;
// Share that lines of a stream of calls compete for, under random replacement. H200 keeps all of
// 33 MB, of its 63, and less than half of 50: between the two above and the whole.
inline constexpr double l2_for_streams = 0.6;

// Share of the traffic of a small kernel that is still in L2 from the kernel before it: all of it
// for nothing, none once the traffic fills the part for operands.
inline double l2_share(Bytes traffic, Bytes capacity) {
  const Bytes room = l2_for_operands * capacity;
  return room > traffic ? 1 - traffic / room : 0;
}

// The inverse: the capacity at which a kernel of this traffic finds `share` of it, below 1.
inline Bytes l2_that_gives(double share, Bytes traffic) {
  return Bytes(traffic.si() / l2_for_operands / std::max(1e-6, 1 - share));
}

}  // namespace orrery
