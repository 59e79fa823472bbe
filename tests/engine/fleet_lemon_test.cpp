// SPDX-License-Identifier: Apache-2.0
// Tests hosts that fail more often than others: rates are kept, and taking them out helps.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, day = 86'400 * second;

// Each of 400 hosts is held for `days` by a job of its own; 4 of them are lemons.
FleetRecord run_hosts(const LemonHosts& lemons, double removed, std::int64_t days,
                      std::uint64_t seed) {
  FleetQuestion question;
  question.shape = {.hosts = 400, .gpus_per_host = 8, .last_host_gpus = 8};
  question.works.front().save_steps = second;
  question.breakdowns.kinds = {
      {"machine", Hertz(400 * 0.0065 / 86'400), 1, removed, seconds(2 * 86'400), {}, {}}};
  question.breakdowns.lemons = lemons;
  question.horizon.us = days * day;
  question.seed = seed;
  ClusterJobs list;
  for (int i = 0; i < 400; ++i)
    list.jobs.push_back({.length = most_fleet_time, .limit = most_fleet_time, .gpus = 8});
  return run_fleet(list, question);
}

double struck(const FleetRecord& record) {
  return static_cast<double>(record.breakdowns.front().struck);
}

TEST_CASE("law: lemons keep the rate of all hosts, and cause their share of failures", "[fleet]") {
  const std::uint64_t seed = fresh(61);
  INFO("seed " << seed);
  constexpr std::int64_t days = 4000;
  constexpr double expected = 400 * 0.0065 * days;
  for (const double share : {0.3, 0.71}) {
    const FleetRecord record = run_hosts({.hosts = 4, .share = share}, 0, days, seed);
    CHECK(std::abs(struck(record) - expected) < 4 * std::sqrt(expected));
    const double of = static_cast<double>(record.lemons.struck) / struck(record);
    CHECK(std::abs(of - share) < 4 * std::sqrt(share * (1 - share) / expected));
    CHECK(record.lemons.exchanged == 0);
  }
  // Who fails is drawn beside when: the same times as without lemons.
  CHECK(struck(run_hosts({.hosts = 4, .share = 0.5}, 0, days, seed)) ==
        struck(run_hosts({}, 0, days, seed)));
}

TEST_CASE("law: what is no lemon's share strikes the others alike", "[fleet]") {
  const SlotShape shape{.hosts = 6, .gpus_per_host = 8, .last_host_gpus = 4};
  BreakdownPlan plan{.kinds = {{"machine", Hertz(1), 1, 0, {}, {}, {}}}};
  plan.lemons = {.hosts = 2, .share = 0.4};
  Breakdowns row(plan, shape, fresh(64));
  REQUIRE(row.lemons().size() == 2);
  constexpr int draws = 40'000;
  std::vector<double> strikes(6);
  for (int i = 0; i < draws; ++i, row.pop()) {
    const auto host = static_cast<std::int32_t>(row.next().gpu / 8);
    REQUIRE(row.next().gpu % 8 < shape.gpus_of(host));
    REQUIRE(row.next().of_lemon == row.lemons().contains(host));
    strikes[static_cast<std::size_t>(host)] += 1.0 / draws;
  }
  double usual = 0;
  for (std::int32_t host = 0; host < 6; ++host)
    if (row.lemons().contains(host))
      CHECK(strikes[static_cast<std::size_t>(host)] == Approx(0.2).margin(0.01));
    else
      usual += strikes[static_cast<std::size_t>(host)];
  CHECK(usual == Approx(0.6).margin(0.01));
}

TEST_CASE("law: lemons that are taken out leave the failures of usual hosts", "[fleet]") {
  const std::uint64_t seed = fresh(62);
  INFO("seed " << seed);
  constexpr std::int64_t days = 4000;
  const LemonHosts out{.hosts = 4, .share = 0.71, .exchange_after = 3, .within = {28 * day}};
  const FleetRecord record = run_hosts(out, 0, days, seed);
  CHECK(record.lemons.lemons_exchanged == 4);
  // Of the others four or five by bad luck: 0.0019 a day, and twice in the four weeks before.
  CHECK(record.lemons.exchanged < 20);
  // 400 hosts as 396 usual ones; and the few failures that it took to find the lemons.
  const double usual = 400 * 0.0065 * days * 0.29 * 400 / 396;
  CHECK(std::abs(struck(record) - usual) < 4 * std::sqrt(usual) + 3 * 4);
  // Also where lemons are away for half of their time: without spares their jobs wait for them.
  const FleetRecord back = run_hosts({.hosts = 4, .share = 0.71}, 0.7, days, seed);
  CHECK(struck(back) > 0.75 * 400 * 0.0065 * days);
  CHECK(struck(back) <= 400 * 0.0065 * days + 4 * std::sqrt(400 * 0.0065 * days));
  CHECK(back.use.repair > record.use.repair);
}

TEST_CASE("law: accelerator-time adds up where hosts are exchanged", "[fleet]") {
  const std::uint64_t seed = fresh(63);
  INFO("seed " << seed);
  std::int64_t exchanged = 0;
  for (std::uint64_t round = 0; round < 8; ++round) {
    FleetQuestion question;
    question.shape = small_cluster(12);
    question.policy.fit = round % 2 == 0 ? JobFit::easy : JobFit::block;
    question.works.front().save_steps = 600 * second;
    question.seed = seed + round;
    question.breakdowns.kinds = {{"process", Hertz(1 / 8000.0), 0, 0, {}, {}, {}},
                                 {"host", Hertz(1 / 2000.0), 1, 0.5, seconds(5000), {}, {}},
                                 {"group", Hertz(1 / 40'000.0), 2, 1, seconds(5000), {}, {}}};
    question.breakdowns.spare_hosts = static_cast<std::int32_t>(round % 3);
    question.breakdowns.lemons = {.hosts = 2, .share = 0.6, .exchange_after = 2, .within = {day}};
    const ClusterJobs list =
        drawn_jobs(seed + round, 150, 3000, {second}, [&](RandomStream& random, ClusterJob& job) {
          job.length.us = static_cast<std::int64_t>(random.below(20'000'000'000));
          job.limit = job.length;
          job.gpus = drawn_gpus(random, 64);
        });
    const FleetRecord record = run_fleet(list, question);
    const FleetUse& use = record.use;
    CHECK(use.work.all() == use.held * 1'000'000);
    CHECK(use.held + use.short_of + use.scattered + use.idle + use.spare + use.repair == use.all);
    exchanged += record.lemons.exchanged;
  }
  CHECK(exchanged > 20);
}

}  // namespace
}  // namespace orrery
