// SPDX-License-Identifier: Apache-2.0
// Lets jobs that start at a time read from one store: whoever meets others begins later.
#pragma once

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/losses/shared_reads.h"

namespace orrery {

// Nothing where no store is shared. Reads begin and end between the instants of a run too, where
// nothing is decided: jobs that never meet run as if each had the store for itself, to the byte.
class StorePass {
 public:
  // Both must outlive it.
  StorePass(FleetState& state, const FleetQuestion& question)
      : state_(state), reads_(question.store_bytes_per_s) {}
  FleetTime next() const { return reads_.next(); }
  // At `now`, which is not after next(), takes what jobs ask for and leave, and moves the first
  // steps of those that read slower or faster; whether one moved.
  bool settle(FleetTime now);
  const StoreReads& counts() const { return counts_; }

 private:
  void pass_to(FleetTime now);
  FleetState& state_;
  SharedReads reads_;
  StoreReads counts_;
};

}  // namespace orrery
