// SPDX-License-Identifier: Apache-2.0
// Knows how a served model did whose replicas were jobs of a shared cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/engine/fleet/fleet_record.h"
#include "sim/engine/jobs/fleet_event.h"
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
  // Of these, of replicas that serve: beyond the least number that bears the load.
  double standby_gpu_hours = 0;
  Watts power;  // of an accelerator of those that serve, as the table has it
};

// A replica was stopped, and had its place again at a time.
struct ReplicaStop {
  FleetTime at, again = fleet_never;
};

// Hears what a run tells, and knows when replicas were stopped.
class ReplicaStops {
 public:
  ReplicaStops() = default;
  // `jobs` must outlive it.
  ReplicaStops(const std::vector<FleetService>& services, const ClusterJobs& jobs)
      : jobs_(jobs.jobs) {
    for (const FleetService& service : services) works_.push_back(service.work);
  }
  void take(const FleetEvent& event);
  const std::vector<ReplicaStop>& of(std::uint32_t job) const;  // in order of time

 private:
  std::span<const ClusterJob> jobs_;
  std::vector<std::uint16_t> works_;
  std::unordered_map<std::uint32_t, std::vector<ReplicaStop>> stops_;
};

// Load is shared evenly by the replicas that serve. Each takes at most what it bears (rule.bears);
// what is above is refused.
ServiceMeasures service_measures(const FleetService& service, const ClusterJobs& jobs,
                                 const FleetRecord& record, const ReplicaStops& stops = {});

// Share of all requests that keeps all promises; 1 where none come.
double kept_share(const std::vector<ServiceMeasures>& services);

}  // namespace orrery
