// SPDX-License-Identifier: Apache-2.0
// Places gangs whose sizes were chosen anew, so that few of those that keep theirs move.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/jobs/placer.h"
#include "topologies/slots.h"

namespace orrery {

struct SizedGang {
  std::int32_t gpus = 0;        // chosen; 0: it gets none
  std::int32_t rank = 0;        // higher ones are placed first, then larger ones
  bool stays = false;           // it is not moved
  const Grants* now = nullptr;  // what it holds; empty: it waits
  Grants place = {};            // what it gets; empty: none, or no place was found
  std::uint32_t job = no_job;   // whose it is
};

// What the place of a gang needs besides free accelerators. This one: nothing.
class GangNeeds {
 public:
  virtual ~GangNeeds() = default;
  // Whether there is a place for the size of a gang; its place, if there is.
  virtual bool fits(const Slots& slots, const std::vector<SizedGang>& gangs, std::size_t gang) {
    return Placer::fits(slots, gangs[gang].gpus);
  }
  virtual bool find(const Slots& slots, Placer& placer, std::vector<SizedGang>& gangs,
                    std::size_t gang) {
    return placer.find(slots, gangs[gang].gpus, gangs[gang].place, no_level, gangs[gang].job);
  }
  // It takes a place (1) or leaves it (-1).
  virtual void change(std::size_t /*gang*/, const Grants& /*place*/, std::int32_t /*sign*/) {}
  // Where hosts have room for a gang and it found no place: whether it has one of a smaller size.
  virtual bool find_smaller(const Slots& /*slots*/, Placer& /*placer*/,
                            std::vector<SizedGang>& /*gangs*/, std::size_t /*gang*/) {
    return false;
  }
};

// `slots`: with what gangs hold now taken; afterwards with what they get. Whoever holds its size
// keeps its place, unless one in front of it finds none otherwise: then gangs behind it leave the
// hosts on which least is held, and are placed again. Where hosts have room and `needs` says no,
// only those of lower rank leave.
void place_gangs(Slots& slots, Placer& placer, std::vector<SizedGang>& gangs, GangNeeds& needs);
inline void place_gangs(Slots& slots, Placer& placer, std::vector<SizedGang>& gangs) {
  GangNeeds none;
  place_gangs(slots, placer, gangs, none);
}

}  // namespace orrery
