// SPDX-License-Identifier: Apache-2.0
// Knows how fast jobs save to a store that they share, by their mean loads.
#pragma once

#include <span>
#include <vector>

#include "sim/base/units/units.h"

namespace orrery {

// A job that saves now and then.
struct StoreSaver {
  BytesPerSecond most;  // while nobody else saves
  BytesPerSecond mean;  // of all of its time
};

// The rate at which a save of each is written: what others, by their means, leave of the store, at
// least an equal part of it, at most its own. Saves that are as far apart as they take together
// need no more than the store takes.
std::vector<BytesPerSecond> save_rates(std::span<const StoreSaver> savers, BytesPerSecond store);

}  // namespace orrery
