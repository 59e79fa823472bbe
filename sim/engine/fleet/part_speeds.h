// SPDX-License-Identifier: Apache-2.0
// Slows the jobs of a shared cluster that run on one accelerator.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

class PartSpeeds {
 public:
  // Both must outlive it.
  PartSpeeds(FleetState& state, const FleetQuestion& question)
      : state_(state), question_(question) {}
  // Looks at the accelerators that jobs joined or left, and gives all on them the speeds that they
  // have together; whether one changed.
  bool settle(FleetTime now) { return state_.shared().watched() && settle_changed(now); }

 private:
  bool settle_changed(FleetTime now);
  std::int64_t step_alone(std::uint32_t job, std::int32_t host) const;
  std::vector<double> speeds_of(const SharedGpu& gpu);

  FleetState& state_;
  const FleetQuestion& question_;
  std::map<std::vector<PartUser>, std::vector<double>> known_;  // users in order
};

}  // namespace orrery
