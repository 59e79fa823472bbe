// SPDX-License-Identifier: Apache-2.0
// Draws jobs for laws of shared clusters, and small clusters for them.
#pragma once

#include "sim/base/random.h"
#include "topologies/slots.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// Jobs that come up to `gaps` - 1 times `gap` after each other; fill(random, job) draws the rest of
// each.
template <class Fill>
ClusterJobs drawn_jobs(std::uint64_t seed, std::size_t count, std::uint64_t gaps, FleetTime gap,
                       const Fill& fill) {
  RandomStream random(seed, 1);
  ClusterJobs list;
  FleetTime at;
  for (std::size_t i = 0; i < count; ++i) {
    at.us += static_cast<std::int64_t>(random.below(gaps)) * gap.us;
    ClusterJob job{.submit = at, .row = static_cast<std::uint32_t>(i + 1)};
    fill(random, job);
    list.jobs.push_back(job);
  }
  return list;
}

// A third of all gangs has up to `most` accelerators, the others up to eight.
inline std::int32_t drawn_gpus(RandomStream& random, std::uint64_t most) {
  return static_cast<std::int32_t>(1 + random.below(random.below(3) == 0 ? most : 8));
}

// `with_limits`: they end before their limits.
inline ClusterJobs random_jobs(std::uint64_t seed, std::size_t count, std::uint64_t most_gpus,
                               bool with_limits) {
  constexpr std::int64_t second = 1'000'000;
  return drawn_jobs(seed, count, 4, {10 * second}, [&](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(random.below(200)) * second;
    job.limit.us =
        job.length.us + (with_limits ? static_cast<std::int64_t>(random.below(100)) * second : 0);
    job.gpus = drawn_gpus(random, most_gpus);
  });
}

// Gangs of up to 40 accelerators for up to 15 minutes, which end at their limits; more(random, job)
// draws what else they have.
template <class More>
ClusterJobs drawn_gangs(std::uint64_t seed, std::size_t count, const More& more) {
  constexpr std::int64_t second = 1'000'000;
  return drawn_jobs(seed, count, 60, {second}, [&](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(1 + random.below(900)) * second;
    job.limit = job.length;
    job.gpus = drawn_gpus(random, 40);
    more(random, job);
  });
}

// Jobs of several kinds of work and three priorities for up to eleven hours.
inline ClusterJobs jobs_of_works(std::uint64_t seed, std::size_t count, std::uint64_t most_gpus,
                                 std::size_t works) {
  return drawn_jobs(seed, count, 3000, {1'000'000}, [&](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(random.below(40'000'000'000));
    job.limit = job.length;
    job.gpus = drawn_gpus(random, most_gpus);
    job.work = static_cast<std::uint16_t>(random.below(works));
    job.priority = static_cast<std::int16_t>(random.below(3));
  });
}

inline SlotShape small_cluster(std::int32_t hosts) {
  SlotShape shape{.hosts = hosts, .gpus_per_host = 8, .last_host_gpus = 8};
  shape.levels = {{"leaf group", 2}, {"pod", 4}};
  return shape;
}

}  // namespace orrery
