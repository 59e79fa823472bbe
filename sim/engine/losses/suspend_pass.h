// SPDX-License-Identifier: Apache-2.0
// Stops jobs until what is drawn fits: the lowest priority first, of these whoever began last.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

class SuspendPass {
 public:
  explicit SuspendPass(FleetState& state) : state_(state) {}
  // Stops as few running jobs as it takes, in their order, to free so many milliwatts. `freed`:
  // those that the stop of a job frees; 0: it does not help. Jobs that are not preemptible run on.
  // They save their whole steps first, wait again, and count as preempted: those that hold their
  // places until their saves count draw power until then. What is left to free.
  std::int64_t free(std::int64_t milliwatts, FleetTime now,
                    const std::function<std::int64_t(std::uint32_t)>& freed,
                    std::string_view cause);
  std::int64_t stopped() const { return stopped_; }  // jobs, so far

 private:
  std::vector<std::uint32_t> in_order(
      const std::function<std::int64_t(std::uint32_t)>& freed) const;

  FleetState& state_;
  std::int64_t stopped_ = 0;
};

}  // namespace orrery
