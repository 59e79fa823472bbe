// SPDX-License-Identifier: Apache-2.0
// Measures how evenly a cluster treats its jobs.
#pragma once

#include <functional>

#include "sim/engine/fleet/fleet_record.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// Of jobs that ended.
struct FleetFairness {
  // (sum of x)^2 / (n x sum of x^2), x a job's length over its completion: 1 if all are slowed
  // alike (Jain, Chiu and Hawe, 1984).
  double jain = 1;
  // Finish-time fairness (Mahajan et al., Themis, NSDI 2020): completion over that on an equal part
  // of the cluster, which all jobs that are there in the mean of its time share. A gang that asks
  // for more than that part takes as many times as long. The worst, and the share of jobs above 1.
  double finish_time_worst = 0, unfair_share = 0;
};

// `counts`: jobs that are asked of; the others are not there.
FleetFairness fleet_fairness(const ClusterJobs& jobs, const FleetRecord& record, double gpus,
                             const std::function<bool(const ClusterJob&)>& counts);

}  // namespace orrery
