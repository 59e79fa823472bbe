// SPDX-License-Identifier: Apache-2.0
// Says whether a job has a place once others have left theirs, or taken some.
#pragma once

#include <cstdint>

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/fleet/power_room.h"

namespace orrery {

// Hosts, accelerators that are shared, and power, as they will be at some time.
class FutureRoom {
 public:
  // As it is now.
  explicit FutureRoom(const FleetState& state);
  // A job takes the place that it has now, or that was just found for it; or gives it back.
  void take(std::uint32_t job, const Grants& place);
  void give(std::uint32_t job, const Grants& place);
  // The job has power, and a place on hosts that are free then.
  bool fits(std::uint32_t job) const;

 private:
  const FleetState* state_;
  Slots slots_;
  FuturePower power_;
  SharedGpus shared_;
};

// When a job has a place if all that run end as the scheduler expects; where it has none even then,
// the last of these ends. `future`, as it is now, is as it will be then.
FleetTime first_place(const FleetState& state, std::uint32_t job, FutureRoom& future);

}  // namespace orrery
