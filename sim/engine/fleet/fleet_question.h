// SPDX-License-Identifier: Apache-2.0
// Knows what is asked of a shared cluster: its shape, a policy, what jobs consist of, what breaks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/engine/fleet/breakdowns.h"
#include "sim/engine/fleet/job_work.h"
#include "sim/engine/fleet/policy.h"
#include "topologies/slots.h"

namespace orrery {

// Says what a step of a job takes on the hosts that it got. Asked by several runs at a time.
class PlacePrices {
 public:
  virtual ~PlacePrices() = default;
  // In picoseconds, at least the step of the kind of work, which it has alone and well placed.
  virtual std::int64_t step_ps(std::uint16_t work, const Grants& place) = 0;
};

struct FleetQuestion {
  SlotShape shape;
  FleetPolicy policy;
  std::uint64_t seed = 0;                    // of random places and of what breaks
  std::vector<JobWork> works = {JobWork{}};  // by ClusterJob::work; the first: recorded lengths
  PlacePrices* prices = nullptr;             // of kinds that are priced
  BreakdownPlan breakdowns = {};             // needs hosts: no pool
  std::int64_t idle_milliwatts = 0;          // of an accelerator that nobody holds
  std::int64_t power_limit_milliwatts = 0;   // no job starts that would pass it; 0: none
  std::optional<std::uint32_t> watch = {};   // the job whose wait is to be told
  // Asked every few thousand events with the time that was reached: true ends the run.
  std::function<bool(FleetTime)> stop = {};
  // Called after the decisions of each instant, for laws.
  std::function<void(FleetTime, const Slots&)> look = {};
};

}  // namespace orrery
