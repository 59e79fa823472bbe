// SPDX-License-Identifier: Apache-2.0
// Knows what a rule that decides at times of its own is told, and asked.
#pragma once

#include <cstdint>

#include "sim/base/units/fleet_time.h"

namespace orrery {

// Without one a cluster decides at each instant at which something happened.
class DecisionLoop {
 public:
  virtual ~DecisionLoop() = default;
  // When it decides next; fleet_never while there is nothing to decide.
  virtual FleetTime next() const = 0;
  virtual void submit(std::uint32_t job) = 0;
  // After what ended, broke and came back: `changed` if any did.
  virtual void settle(bool changed) = 0;
  // At every instant, after its submissions; it decides if its time has come.
  virtual void wake(FleetTime now) = 0;
};

}  // namespace orrery
