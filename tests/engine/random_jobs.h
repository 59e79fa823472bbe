// SPDX-License-Identifier: Apache-2.0
// Draws jobs for laws of shared clusters, and small clusters for them.
#pragma once

#include "sim/base/random.h"
#include "topologies/slots.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// Gangs, a third of them up to `most_gpus`; `with_limits`: they end before their limits.
inline ClusterJobs random_jobs(std::uint64_t seed, std::size_t count, std::int64_t most_gpus,
                               bool with_limits) {
  RandomStream random(seed, 1);
  ClusterJobs list;
  FleetTime at;
  for (std::size_t i = 0; i < count; ++i) {
    at.us += static_cast<std::int64_t>(random.below(4)) * 10'000'000;
    ClusterJob job{.submit = at, .row = static_cast<std::uint32_t>(i + 1)};
    job.length.us = static_cast<std::int64_t>(random.below(200)) * 1'000'000;
    job.limit.us = job.length.us +
                   (with_limits ? static_cast<std::int64_t>(random.below(100)) * 1'000'000 : 0);
    job.gpus = static_cast<std::int32_t>(
        1 + random.below(random.below(3) == 0 ? static_cast<std::uint64_t>(most_gpus) : 8));
    list.jobs.push_back(job);
  }
  return list;
}

inline SlotShape small_cluster(std::int32_t hosts) {
  SlotShape shape{.hosts = hosts, .gpus_per_host = 8, .last_host_gpus = 8};
  shape.levels = {{"leaf group", 2}, {"pod", 4}};
  return shape;
}

}  // namespace orrery
