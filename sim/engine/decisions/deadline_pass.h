// SPDX-License-Identifier: Apache-2.0
// Makes room for a job that would otherwise end after its deadline, by stopping those with time.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

class DeadlinePass {
 public:
  DeadlinePass(FleetState& state, const FleetQuestion& question)
      : state_(state), policy_(question.policy) {}
  // For the head of the list, which has no place: if it would be in time from now on, but not from
  // the start that it can be promised, stops as few jobs as it takes that are due later, those that
  // are due last first, of equals whoever began last. Nobody is stopped who would be too late if it
  // went on when the head ends. All by what the scheduler is told of lengths. Whether it
  // stopped any: then the head may have a place.
  bool make_room(FleetTime now);

 private:
  bool is_urgent(const WaitingJob& head, FleetTime now) const;
  bool can_wait(std::uint32_t job, const StopCost& cost, FleetTime wait) const;
  std::vector<std::uint32_t> candidates(const WaitingJob& head, FleetTime now) const;

  FleetState& state_;
  const FleetPolicy& policy_;
};

}  // namespace orrery
