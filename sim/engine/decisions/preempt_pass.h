// SPDX-License-Identifier: Apache-2.0
// Makes room for a job of higher priority by stopping others.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

class PreemptPass {
 public:
  PreemptPass(FleetState& state, const FleetQuestion& question)
      : state_(state), question_(question) {}
  // Stops as few jobs as it takes, in their order, for the head of the list, which has no place;
  // whether it stopped any: then it may have one. Nobody is stopped in vain.
  bool make_room(FleetTime now);

 private:
  bool could_help(std::int64_t gpus, std::int32_t priority) const;
  std::vector<std::uint32_t> candidates(std::int32_t priority, FleetTime now) const;

  FleetState& state_;
  const FleetQuestion& question_;
};

}  // namespace orrery
