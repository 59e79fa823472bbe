// SPDX-License-Identifier: Apache-2.0
// Tests laws of jobs that slow each other on one accelerator.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/parts_case.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

// All on an accelerator get the same share of it.
class EqualShares final : public PlacePrices {
 public:
  PlacePrice price(std::uint16_t, const Grants& place) override {
    REQUIRE(gpus_of_place(place) == 1);
    return {.step_ps = 777'777'777};
  }
  std::vector<double> speeds(const std::vector<PartUser>& users) override {
    most = std::max(most, users.size());
    return std::vector<double>(users.size(), 1.0 / static_cast<double>(users.size()));
  }
  std::size_t most = 0;
};

// Processor sharing: the mean time in the system depends on the mean length alone (Kleinrock 1967).
TEST_CASE("law: jobs that share one accelerator evenly take what processor sharing says",
          "[fleet][parts]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  constexpr std::size_t parts = 10, of_part = 5'000;
  constexpr double load = 0.6;
  for (const bool even : {false, true}) {
    RandomStream random(seed, 2);
    ClusterJobs list;
    double at = 0, lengths = 0;
    for (std::size_t i = 0; i < parts * of_part; ++i) {
      at += random.exponential(1 / load);
      ClusterJob job{.submit = {static_cast<std::int64_t>(at * 1e8)}};
      const double length = even ? 1 : random.below(10) == 0 ? 9.1 : 0.1;
      job.length.us = job.limit.us = static_cast<std::int64_t>(length * 1e8);
      job.milli = 1;
      job.uses = 1;
      lengths += length;
      list.jobs.push_back(job);
    }
    FleetQuestion question = sharing(JobOrder::fifo, JobFit::block, JobPlace::pack);
    question.shape = {.hosts = 1, .gpus_per_host = 1, .last_host_gpus = 1};
    EqualShares shares;
    question.prices = &shares;
    const FleetRecord record = run_fleet(list, question);
    CHECK(shares.most > 5);
    std::vector<double> means(parts, 0);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(record.jobs[i].start == list.jobs[i].submit);
      means[i / of_part] +=
          1e-8 * static_cast<double>((record.jobs[i].end - list.jobs[i].submit).us) / of_part;
    }
    double mean = 0, squares = 0;
    for (const double m : means) mean += m / parts;
    for (const double m : means) squares += (m - mean) * (m - mean);
    const double error = std::sqrt(squares / (parts * (parts - 1)));
    const double mean_length = lengths / static_cast<double>(parts * of_part);
    CHECK(std::abs(mean - mean_length / (1 - load * mean_length)) < 4 * error);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    CHECK(record.use.work.slowed > 0);
    CHECK(record.use.work.useful == asked_for(list));
  }
}

TEST_CASE("law: whoever is slowed by others loses and gains no step", "[fleet][parts]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  EqualShares shares;
  for (std::uint64_t round = 0; round < 20; ++round) {
    FleetQuestion question = sharing(JobOrder::priority, JobFit::easy, JobPlace::pack);
    question.seed = seed + round;
    question.policy.preempts = round % 2 == 0;
    question.prices = &shares;
    question.works.push_back(JobWork{});
    question.works[1].step_ps = 777'777'777;
    question.works[1].priced = true;
    for (JobWork& work : question.works) {
      work.save_steps = 60 * second;
      work.save_ps = 777'777;
      work.restart.us = 7 * second;
    }
    question.works[1].save_steps = 1000;
    question.breakdowns.kinds = {
        {.name = "process", .rate = Hertz(1 / 300.0), .reach = 0, .removed = 0},
        {.name = "host", .rate = Hertz(1 / 1500.0), .removed = 0.5, .repair = seconds(900)}};
    ClusterJobs list = jobs_with_parts(seed + round, 250, 2);
    for (ClusterJob& job : list.jobs) {
      job.uses = job.is_part() ? 1 : 0;
      if (!job.is_part()) job.work = 0;
    }
    const FleetRecord record = run_fleet(list, question);
    const FleetUse& use = record.use;
    CHECK(use.work.all() == use.held * 1'000'000);
    CHECK(use.work.slowed > 0);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(record.jobs[i].end != fleet_never);
      REQUIRE(record.jobs[i].end - record.jobs[i].start + FleetTime{1000} >= list.jobs[i].length);
    }
  }
}

}  // namespace
}  // namespace orrery
