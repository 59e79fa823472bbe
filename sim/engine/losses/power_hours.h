// SPDX-License-Identifier: Apache-2.0
// Lets the limit of power change by the hour, and stops jobs where caps do not suffice.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/losses/suspend_pass.h"
#include "sim/engine/power/fleet_hours.h"

namespace orrery {

class PowerHours {
 public:
  PowerHours(FleetState& state, const FleetQuestion& question);
  // The next hour with another limit; fleet_never: none.
  FleetTime next() const;
  // The limit of now; whether it changed. If the jobs that run draw more at their least caps, some
  // are stopped: suspension is the last resort.
  bool change_until(FleetTime now);
  std::int64_t suspended() const { return suspend_.stopped(); }

 private:
  FleetState& state_;
  const std::vector<std::int64_t>& limits_;
  SuspendPass suspend_;
  std::size_t hour_ = 0;  // whose limit holds
  std::size_t next_ = 0;  // the first with another one; limits_.size(): none
  void find_next();
};

}  // namespace orrery
