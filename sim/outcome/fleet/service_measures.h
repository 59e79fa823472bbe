// SPDX-License-Identifier: Apache-2.0
// Knows how a served model did whose replicas were jobs of a shared cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine/fleet/fleet_record.h"
#include "sim/outcome/fleet/replica_plan.h"
#include "sim/outcome/serving/service_table.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// A served model on a shared cluster.
struct FleetService {
  std::string id;
  std::shared_ptr<const ServiceTable> table;  // of a replica
  LoadCurve load;
  ReplicaRule rule;
  std::int32_t gpus = 1;   // of a replica
  FleetTime open, close;   // requests come from and until then
  std::uint16_t work = 0;  // ClusterJob::work of its replicas
};

// Of the requests that came while it was open.
struct ServiceMeasures {
  double requests = 0;
  double refused = 0;     // share of them: more than those that stand can serve as promised
  double kept = 1;        // share of them that keeps all promises; refused ones keep none
  double worst_hour = 1;  // the least such share of an hour from its opening on
  FleetTime worst_at;     // when that hour begins
  double tokens = 0;      // output
  double replicas = 0;    // that serve, in the mean
  double most_replicas = 0;
  double gpu_hours = 0;  // that they held, until they serve too
  Watts power;           // of an accelerator of those that serve, as the table has it
};

// Load is shared evenly by the replicas that serve. Each takes at most what it bears (rule.bears);
// what is above is refused. A record says how long a replica was stopped, and not when: it counts
// as stopped in so large a share of its time, each by itself.
ServiceMeasures service_measures(const FleetService& service, const ClusterJobs& jobs,
                                 const FleetRecord& record);

// Share of all requests that keeps all promises; 1 where none come.
double kept_share(const std::vector<ServiceMeasures>& services);

}  // namespace orrery
