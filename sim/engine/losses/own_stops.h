// SPDX-License-Identifier: Apache-2.0
// Draws when jobs stop by themselves: their software fails, or somebody plans a stop.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

// Times of a job depend on the seed and its place in the list alone, so that policies are compared
// on the same ones; those at which it does not run pass.
class OwnStops {
 public:
  OwnStops(FleetState& state, std::uint64_t seed) : state_(state), seed_(seed) {}
  void submit(std::uint32_t job, FleetTime now);
  FleetTime next() const { return stops_.empty() ? fleet_never : stops_.top().at; }
  // Whether anything changed.
  bool stop_until(FleetTime now);

 private:
  struct Stop {
    FleetTime at;
    std::uint32_t job = 0;
    bool planned = false;
    RandomStream random;
    bool operator<(const Stop& o) const {
      return at != o.at ? at > o.at : job != o.job ? job > o.job : planned && !o.planned;
    }
  };
  void push(Stop stop, FleetTime from);

  FleetState& state_;
  std::uint64_t seed_;
  std::priority_queue<Stop> stops_;
};

}  // namespace orrery
