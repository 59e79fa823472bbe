// SPDX-License-Identifier: Apache-2.0
// Tests Slurm's priorities: closed forms of usage, the fair tree, and what each weight does alone.
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr double day = 86'400;

TEST_CASE("usage that is held grows to its bound and halves every half-life", "[slurm]") {
  Multifactor priorities({.fairshare = 1, .half_life = 2 * day}, 64);
  priorities.know(0, 1);
  const MultifactorJob job{.queue = 0, .user = 1, .gpus = 16};
  priorities.begin(job, 0);
  const double bound = 16 * 2 * day / std::numbers::ln2;
  for (const double at : {0.5 * day, 2 * day, 9 * day})
    CHECK(priorities.usage(0, 1, at) == Approx(bound * (1 - std::exp2(-at / (2 * day)))));
  priorities.end(job, 60 * day);
  CHECK(priorities.usage(0, 1, 60 * day) == Approx(bound).epsilon(1e-8));
  CHECK(priorities.usage(0, 1, 62 * day) == Approx(bound / 2).epsilon(1e-8));
  CHECK(priorities.usage(0, 1, 66 * day) == Approx(bound / 8).epsilon(1e-8));
}

TEST_CASE("the fair tree ranks accounts before their users, and equals alike", "[slurm]") {
  Multifactor priorities({.fairshare = 1}, 64);
  for (const auto& [queue, user] : {std::pair{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 5}, {2, 6}})
    priorities.know(queue, user);
  const auto use = [&](std::int32_t queue, std::int32_t user, double gpus) {
    const MultifactorJob job{.queue = queue, .user = user, .gpus = gpus};
    priorities.begin(job, 0);
    priorities.end(job, 100);
  };
  // Account 0 used least, but its user 1 more than anybody of account 1 did.
  use(0, 1, 9);
  use(0, 2, 1);
  use(1, 3, 8);
  use(1, 4, 8);
  use(2, 5, 30);
  priorities.rank(100);
  CHECK(priorities.fairshare(0, 2) == 1);
  CHECK(priorities.fairshare(0, 1) == Approx(5.0 / 6));
  CHECK(priorities.fairshare(1, 3) == Approx(4.0 / 6));
  CHECK(priorities.fairshare(1, 4) == Approx(4.0 / 6));
  CHECK(priorities.fairshare(2, 6) == Approx(2.0 / 6));
  CHECK(priorities.fairshare(2, 5) == Approx(1.0 / 6));
}

FleetQuestion weighted(const MultifactorSettings& weights, std::int32_t hosts) {
  FleetQuestion question;
  question.shape = small_cluster(hosts);
  question.policy.fit = JobFit::slurm;
  question.loops.slurm.multifactor = weights;
  return question;
}

TEST_CASE("law: without weights, and with that of age alone, the oldest is first", "[slurm]") {
  const std::uint64_t seed = fresh(61);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 8; ++round) {
    ClusterJobs list = random_jobs(seed + round, 250, 64, true);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      list.jobs[i].user = static_cast<std::int32_t>(i % 7);
      list.jobs[i].priority = static_cast<std::int16_t>(i % 3);
    }
    const FleetRecord plain = run_fleet(list, weighted({}, 8));
    const FleetRecord aged = run_fleet(list, weighted({.age = 1e9}, 8));
    for (std::size_t i = 0; i < list.jobs.size(); ++i)
      REQUIRE(aged.jobs[i].start == plain.jobs[i].start);
    const FleetRecord other = run_fleet(list, weighted({.qos = 1000}, 8));
    std::size_t moved = 0;
    for (std::size_t i = 0; i < list.jobs.size(); ++i)
      moved += other.jobs[i].start == plain.jobs[i].start ? 0 : 1;
    CHECK(moved > 50);
  }
}

// Gangs of more than half of a cluster run one after the other: in the order of their priorities.
TEST_CASE("weights of size and of QOS order jobs that cannot run beside each other", "[slurm]") {
  const std::uint64_t seed = fresh(62);
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  ClusterJobs list;
  for (std::uint32_t i = 0; i < 40; ++i) {
    ClusterJob job{.length = {3'600'000'000}, .limit = {3'600'000'000}, .row = i + 1};
    job.gpus = static_cast<std::int32_t>(33 + random.below(32));
    job.priority = static_cast<std::int16_t>(random.below(5));
    list.jobs.push_back(job);
  }
  const auto by = [&](const MultifactorSettings& weights, const auto& is_first) {
    const FleetRecord record = run_fleet(list, weighted(weights, 8));
    for (std::size_t a = 0; a < list.jobs.size(); ++a)
      for (std::size_t b = 0; b < list.jobs.size(); ++b)
        if (is_first(list.jobs[a], list.jobs[b]))
          REQUIRE(record.jobs[a].start < record.jobs[b].start);
  };
  by({.jobsize = 1e6}, [](const auto& a, const auto& b) { return a.gpus > b.gpus; });
  by({.qos = 1e6}, [](const auto& a, const auto& b) { return a.priority > b.priority; });
}

// Two users keep a cluster full, one with three times as many jobs: they get halves of it, and the
// shares of what they submit without fair share.
TEST_CASE("law: fair share halves a full cluster, whoever submits more", "[slurm]") {
  const std::uint64_t seed = fresh(63);
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  ClusterJobs list;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    ClusterJob job{.submit = {INT64_C(60'000'000) * i}, .row = i + 1};
    job.length.us = static_cast<std::int64_t>(1'800 + random.below(3'600)) * 1'000'000;
    job.limit = job.length;
    job.gpus = static_cast<std::int32_t>(1 + random.below(8));
    job.user = random.below(4) == 0 ? 1 : 0;
    list.jobs.push_back(job);
  }
  // 270 GPUs are asked for in the mean, on 64: one user asks for 68 of them.
  const auto share = [&](const MultifactorSettings& weights) {
    FleetQuestion question = weighted(weights, 8);
    question.horizon = list.jobs.back().submit;
    const FleetRecord record = run_fleet(list, question);
    double held[2] = {0, 0};
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const JobRecord& r = record.jobs[i];
      if (r.start == fleet_never) continue;
      const FleetTime end = std::min(r.end, question.horizon);
      held[list.jobs[i].user] += list.jobs[i].gpus * to_seconds(end - r.start).si();
    }
    return held[1] / (held[0] + held[1]);
  };
  CHECK(share({.fairshare = 1000, .half_life = 3'600}) == Approx(0.5).margin(0.02));
  CHECK(share({}) == Approx(0.25).margin(0.05));
}

}  // namespace
}  // namespace orrery
