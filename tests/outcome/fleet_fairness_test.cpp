// SPDX-License-Identifier: Apache-2.0
// Tests measures of fairness on clusters small enough to count by hand.
#include <array>
#include <catch2/catch.hpp>

#include "sim/engine/cluster/fleet_run.h"
#include "sim/outcome/fleet/fleet_fairness.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

ClusterJobs jobs_of(const std::vector<std::array<std::int64_t, 3>>& list) {
  ClusterJobs jobs;
  for (const auto& [submit, length, gpus] : list) {
    ClusterJob job{.submit = {submit * second}, .length = {length * second}};
    job.limit = job.length;
    job.gpus = static_cast<std::int32_t>(gpus);
    jobs.jobs.push_back(job);
  }
  return jobs;
}

FleetFairness fairness_of(const ClusterJobs& jobs, std::int64_t gpus) {
  FleetQuestion question;
  question.shape = pool_shape(gpus);
  question.policy.place = JobPlace::pool;
  return fleet_fairness(jobs, run_fleet(jobs, question), static_cast<double>(gpus),
                        [](const ClusterJob&) { return true; });
}

TEST_CASE("a cluster on which nobody waits is fair", "[fleet]") {
  const FleetFairness fair = fairness_of(jobs_of({{0, 100, 4}, {10, 50, 4}}), 8);
  CHECK(fair.jain == Approx(1));
  CHECK(fair.unfair_share == 0);
  // Two are there on eight: four are an equal part.
  CHECK(fair.finish_time_worst == Approx(1));
}

TEST_CASE("who waits behind others is treated unfairly", "[fleet]") {
  // The second waits 100 s for all eight, and takes 200 s. Two are there for half of its time: 1.5
  // in the mean, which leaves it 16 / 3 of 8 accelerators and 150 s.
  const FleetFairness one = fairness_of(jobs_of({{0, 100, 8}, {0, 100, 8}}), 8);
  CHECK(one.finish_time_worst == Approx(200 / 150.0));
  CHECK(one.unfair_share == Approx(0.5));
  CHECK(one.jain == Approx(1.5 * 1.5 / (2 * 1.25)));
  // A short one behind a long one: 110 s against 10 s x 8 / (8 / (2 x 100 + 10) x 110).
  const FleetFairness two = fairness_of(jobs_of({{0, 100, 8}, {0, 10, 8}}), 8);
  CHECK(two.finish_time_worst == Approx(110 / (10 * 210 / 110.0)));
}

}  // namespace
}  // namespace orrery
