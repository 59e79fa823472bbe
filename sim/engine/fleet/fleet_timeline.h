// SPDX-License-Identifier: Apache-2.0
// Knows what a cluster did in each part of a run, without knowing how long the run will be.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fleet/fleet_record.h"

namespace orrery {

// Parts of equal length; where there would be more than `most_parts`, two become one. In integers,
// so that parts sum to the whole run.
class FleetTimelineMaker {
 public:
  static constexpr std::size_t most_parts = 64;
  // From `from` on nothing changed for so long: accelerators by what they did, jobs that waited.
  void add(FleetTime from, FleetTime passed, const TimelinePart& state);
  FleetTimeline take() { return std::move(timeline_); }

 private:
  FleetTimeline timeline_;
};

}  // namespace orrery
