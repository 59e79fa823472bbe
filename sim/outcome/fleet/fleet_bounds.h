// SPDX-License-Identifier: Apache-2.0
// Knows what no policy on a cluster can do better than.
#pragma once

#include <cstdint>

#include "sim/base/units/units.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// The least mean completion of the jobs that so many accelerators can run: of each at least its
// length, and all of them at least what they take where accelerators are a fluid that serves the
// least remaining work first. Jobs of more accelerators than there are do not count. 0: none.
Seconds least_mean_completion(const ClusterJobs& jobs, std::int64_t gpus);

}  // namespace orrery
