// SPDX-License-Identifier: Apache-2.0
// Tests that bounds of a schedule lie on their side of every simulation.
#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/outcome/fleet/fleet_bounds.h"
#include "sim/outcome/fleet/fleet_measures.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

TEST_CASE("law: no policy has a mean completion below the bound", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  double nearest = 1e9;
  for (std::uint64_t round = 0; round < 60; ++round) {
    RandomStream random(seed + round, 7);
    ClusterJobs list;
    FleetTime at;
    for (int i = 0; i < 200; ++i) {
      at.us += static_cast<std::int64_t>(random.below(40'000'000));
      ClusterJob job{.submit = at};
      job.length.us = static_cast<std::int64_t>(random.exponential(1) * 3e8);
      job.limit = job.length;
      job.gpus = static_cast<std::int32_t>(1 + random.below(round % 2 == 0 ? 1 : 40));
      if (random.below(8) == 0) job.fate = JobFate::failed;
      list.jobs.push_back(job);
      const auto number = static_cast<std::uint32_t>(i);
      if (round % 3 == 0 && i > 0 && random.below(2) == 0)
        list.dependencies.push_back({number, static_cast<std::uint32_t>(random.below(number))});
    }
    const std::int64_t gpus = round % 2 == 0 ? 4 : 32;
    const double bound = least_mean_completion(list, gpus).si();
    for (const JobOrder order : {JobOrder::fifo, JobOrder::sjf})
      for (const JobFit fit : {JobFit::block, JobFit::easy}) {
        FleetQuestion question;
        question.shape = pool_shape(gpus);
        question.policy = {order, fit, JobPlace::pool};
        const double mean = fleet_measures(list, run_fleet(list, question)).completion.mean().si();
        REQUIRE(mean >= bound * (1 - 1e-9));
        nearest = std::min(nearest, mean / bound);
      }
  }
  // It is no empty bound: shortest first on single accelerators comes near it.
  INFO("nearest " << nearest);
  CHECK(nearest < 1.25);
}

}  // namespace
}  // namespace orrery
