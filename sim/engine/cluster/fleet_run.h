// SPDX-License-Identifier: Apache-2.0
// Runs the jobs of a shared cluster, event by event, by one policy.
#pragma once

#include "sim/engine/fleet/fleet_question.h"
#include "sim/engine/fleet/fleet_record.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// At one instant first all ends count, then repairs, then what breaks, then jobs that come after
// such as have ended, then all submissions; then the policy decides once. The run is over when all
// have ended.
FleetRecord run_fleet(const ClusterJobs& jobs, const FleetQuestion& question);

}  // namespace orrery
