// SPDX-License-Identifier: Apache-2.0
// Draws jobs of which some ask for parts of accelerators, and asks small clusters that share them.
#pragma once

#include <catch2/catch.hpp>

#include "sim/engine/cluster/fleet_run.h"
#include "tests/engine/random_jobs.h"

namespace orrery {

// Half of them ask for parts; the others are gangs. Some are saved, three priorities, two queues.
inline ClusterJobs jobs_with_parts(std::uint64_t seed, std::size_t count, std::size_t works = 1) {
  return drawn_jobs(seed, count, 60, {1'000'000}, [&](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(1 + random.below(900)) * INT64_C(1'000'000);
    job.limit.us =
        job.length.us + static_cast<std::int64_t>(random.below(2) * 300) * INT64_C(1'000'000);
    job.gpus = drawn_gpus(random, 20);
    job.priority = static_cast<std::int16_t>(random.below(3));
    job.preemptible = random.below(4) != 0;
    job.work = static_cast<std::uint16_t>(random.below(works));
    job.queue = static_cast<std::int32_t>(random.below(2));
    if (random.below(2) == 0) return;
    job.gpus = 1;
    job.milli = static_cast<std::uint16_t>(1 + random.below(999));
  });
}

// As many jobs of one accelerator as keep so many servers busy.
inline ClusterJobs jobs_for_servers(std::uint64_t seed, std::size_t count, std::int32_t servers) {
  ClusterJobs list = random_jobs(seed, count, 1, true);
  RandomStream random(seed, 9);
  for (ClusterJob& job : list.jobs) {
    job.gpus = 1;
    job.submit.us /= servers;
    job.priority = static_cast<std::int16_t>(random.below(3));
  }
  return list;
}

// The same jobs, each with a k-th of an accelerator.
inline ClusterJobs with_parts(ClusterJobs list, std::int32_t k) {
  for (ClusterJob& job : list.jobs) job.milli = static_cast<std::uint16_t>(whole_gpu / k);
  return list;
}

// A pool of so many servers.
inline FleetQuestion with_servers(JobOrder order, JobFit fit, std::int64_t servers) {
  FleetQuestion question;
  question.policy = {order, fit, JobPlace::pool};
  question.shape = pool_shape(servers);
  return question;
}

// All start when they do in the other run, and some wait.
inline void check_same_waits(const ClusterJobs& list, const FleetRecord& one,
                             const FleetRecord& other) {
  std::int64_t waited = 0;
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    REQUIRE(one.jobs[i].start == other.jobs[i].start);
    waited += (one.jobs[i].start - list.jobs[i].submit).us;
  }
  CHECK(waited > INT64_C(100'000'000));
}

inline FleetQuestion sharing(JobOrder order, JobFit fit, JobPlace place) {
  FleetQuestion question;
  question.shape = small_cluster(4);
  question.policy = {order, fit, place};
  question.policy.share = GpuShare::best_fit;
  return question;
}

inline GpuPicos asked_for(const ClusterJobs& list) {  // of jobs that ran to their ends, undisturbed
  GpuPicos sum = 0;
  for (const ClusterJob& job : list.jobs)
    sum += static_cast<GpuPicos>(milli_gpus(job)) * job.length.us * 1000;
  return sum;
}

}  // namespace orrery
