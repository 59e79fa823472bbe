// SPDX-License-Identifier: Apache-2.0
// Counts what the accelerators of a cluster do from instant to instant.
#pragma once

#include <cstdint>

#include "sim/engine/fleet/fleet_record.h"
#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/fleet/fleet_timeline.h"
#include "sim/engine/fleet/wait_teller.h"
#include "sim/engine/power/power_ramp.h"

namespace orrery {

class FleetTally {
 public:
  // Both must outlive it.
  FleetTally(FleetState& state, const FleetQuestion& question)
      : state_(state),
        question_(question),
        teller_(state, question.watch),
        ramps_(state.power().drawn()) {}
  WaitTeller& teller() { return teller_; }
  std::uint64_t events() const { return record_.events; }
  // Nothing changed for so long; `spare`: accelerators that stand by.
  void pass(FleetTime from, FleetTime passed, std::int64_t spare);
  // After the decisions of an instant.
  void note(FleetTime now);
  // Once the run is over.
  FleetRecord take(FleetTime now);

 private:
  void count(FleetTime passed, std::int64_t spare, bool scattered);
  TimelinePart part(std::int64_t spare) const;
  void tell_power(FleetTime now);

  FleetState& state_;
  const FleetQuestion& question_;
  WaitTeller teller_;
  FleetTimelineMaker timeline_;
  RampWatches ramps_;
  std::int64_t told_ = -1;  // of power
  GpuMicros unshared_ = 0;  // of thousandths of accelerators
  FleetRecord record_;
};

}  // namespace orrery
