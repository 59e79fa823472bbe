// SPDX-License-Identifier: Apache-2.0
// Moves jobs that had much accelerator-time behind those that had little, as Tiresias does.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

// Least attained service, discretised into two queues (Gu et al., NSDI 2019): a job is in the first
// until it has held so much; nobody comes back to it.
class ServiceQueues {
 public:
  ServiceQueues(FleetState& state, const FleetQuestion& question)
      : state_(state), first_(question.policy.first_queue) {}
  FleetTime next() const { return ends_.empty() ? fleet_never : ends_.top().at; }
  // Jobs whose time in the first queue is over; whether there were some.
  bool move_until(FleetTime now);
  // Looks at who got accelerators and gave them back.
  void settle(FleetTime now);

 private:
  struct FirstEnd {
    FleetTime at;
    std::uint32_t job = 0;
    FleetTime since;  // it has held them
    bool operator<(const FirstEnd& o) const { return at != o.at ? at > o.at : job > o.job; }
  };
  struct Service {
    GpuMicros attained = 0;  // of thousandths of accelerators
    FleetTime since = fleet_never;
  };

  FleetState& state_;
  GpuMicros first_;
  std::vector<Service> services_;
  std::priority_queue<FirstEnd> ends_;
};

}  // namespace orrery
