// SPDX-License-Identifier: Apache-2.0
// Runs the jobs of a shared cluster, event by event, by one policy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/engine/fleet/fleet_record.h"
#include "sim/engine/fleet/policy.h"
#include "topologies/slots.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

struct FleetQuestion {
  SlotShape shape;
  FleetPolicy policy;
  std::uint64_t seed = 0;                   // of random places
  std::optional<std::uint32_t> watch = {};  // the job whose wait is to be told
  // Asked every few thousand events with the time that was reached: true ends the run.
  std::function<bool(FleetTime)> stop = {};
  // Called after the decisions of each instant, for laws.
  std::function<void(FleetTime, const Slots&)> look = {};
};

// At one instant first all ends count, then all submissions; then the policy decides once. The run
// is over when all have ended.
FleetRecord run_fleet(const ClusterJobs& jobs, const FleetQuestion& question);

}  // namespace orrery
