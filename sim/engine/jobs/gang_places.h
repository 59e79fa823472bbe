// SPDX-License-Identifier: Apache-2.0
// Places gangs whose sizes were chosen anew, so that few of those that keep theirs move.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/jobs/policy.h"
#include "topologies/slots.h"

namespace orrery {

struct SizedGang {
  std::int32_t gpus = 0;        // chosen; 0: it gets none
  std::int32_t rank = 0;        // higher ones are placed first, then larger ones
  bool stays = false;           // it is not moved
  const Grants* now = nullptr;  // what it holds; empty: it waits
  Grants place = {};            // what it gets; empty: none, or no place was found
};

// `slots`: with what gangs hold now taken; afterwards with what they get. Whoever holds its size
// keeps its place, unless one in front of it finds none otherwise: then gangs behind it leave the
// hosts on which least is held, and are placed again.
void place_gangs(Slots& slots, Placer& placer, std::vector<SizedGang>& gangs);

}  // namespace orrery
