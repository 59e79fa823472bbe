// SPDX-License-Identifier: Apache-2.0
// Tests laws of jobs that are kept back after a stop: none starts again before its time.
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <optional>

#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/fleet/requeue_holds.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

FleetQuestion question_of(std::uint64_t seed, JobFit fit) {
  FleetQuestion question;
  question.shape = small_cluster(10);
  question.policy = {JobOrder::priority, fit, JobPlace::pack};
  question.policy.preempts = fit != JobFit::conservative;
  question.seed = seed;
  question.works[0].save_steps = 60 * second;
  question.breakdowns.kinds = {{"host", Hertz(1 / 400.0), 1, 0.6, seconds(900), {}, {}}};
  return question;
}

ClusterJobs ranked_gangs(std::uint64_t seed) {
  return drawn_gangs(seed, 300, [](RandomStream& random, ClusterJob& job) {
    job.priority = static_cast<std::int16_t>(random.below(3));
    job.queue = static_cast<std::int32_t>(random.below(2));
  });
}

TEST_CASE("delays of a row of stops double up to the most", "[fleet]") {
  const RequeueDelay job{.first = {10 * second}, .most = {360 * second}};
  const std::array<std::int64_t, 8> expected = {10, 20, 40, 80, 160, 320, 360, 360};
  for (std::size_t n = 0; n < expected.size(); ++n)
    CHECK(requeue_delay(job, static_cast<std::int32_t>(n + 1)).us == expected[n] * second);
  const RequeueDelay slurm{.first = {120 * second}, .most = {}};
  for (const std::int32_t n : {1, 2, 35}) CHECK(requeue_delay(slurm, n).us == 120 * second);
  CHECK(requeue_delay({}, 5).us == 0);
}

TEST_CASE("a long run ends a row of stops", "[fleet]") {
  RequeueHolds holds({.first = {10 * second}, .most = {300 * second}});
  const auto delay_after = [&](std::int64_t ran_s) {
    REQUIRE(holds.hold(7, {1000 * second}, {ran_s * second}));
    REQUIRE(holds.holds(7));
    const std::int64_t delay = holds.next().us / second - 1000;
    REQUIRE(holds.take() == 7);
    return delay;
  };
  CHECK(delay_after(5) == 10);
  CHECK(delay_after(5) == 20);
  CHECK(delay_after(599) == 40);
  CHECK(delay_after(600) == 10);
  CHECK_FALSE(holds.holds(7));
  CHECK(holds.next() == fleet_never);
}

// A job of higher priority takes all hosts for ten seconds; the other one could go on after them.
TEST_CASE("whoever was stopped waits for its delay though there is room", "[fleet]") {
  ClusterJobs list;
  list.jobs = {{.length = {100 * second}, .limit = {100 * second}, .gpus = 80},
               {.submit = {20 * second},
                .length = {10 * second},
                .limit = {10 * second},
                .gpus = 80,
                .priority = 1}};
  FleetQuestion question = question_of(1, JobFit::easy);
  question.breakdowns = {};
  question.works[0].save_steps = second;
  for (const std::int64_t delay : {0, 5, 10, 120}) {
    question.policy.requeue.first.us = delay * second;
    const FleetRecord record = run_fleet(list, question);
    const std::int64_t again = std::max<std::int64_t>(10, delay);
    CHECK(record.jobs[1].start.us == 20 * second);
    CHECK(record.jobs[0].waited_again.us == again * second);
    CHECK(record.jobs[0].end.us == (100 + again) * second);
    CHECK(record.use.idle == GpuMicros{80} * (again - 10) * second);
  }
}

// Stopped twice: after a run of `ran` seconds the second delay is twice the first, or the same.
TEST_CASE("delays double for those that are stopped again soon", "[fleet]") {
  for (const std::int64_t ran : {599, 600}) {
    ClusterJobs list;
    list.jobs.push_back({.length = {2'000 * second}, .limit = {2'000 * second}, .gpus = 80});
    for (const std::int64_t at : {20L, 20L + 100 + ran})
      list.jobs.push_back({.submit = {at * second},
                           .length = {10 * second},
                           .limit = {10 * second},
                           .gpus = 80,
                           .priority = 1});
    FleetQuestion question = question_of(1, JobFit::easy);
    question.breakdowns = {};
    question.works[0].save_steps = second;
    question.policy.requeue = {.first = {100 * second}, .most = {300 * second}};
    const FleetRecord record = run_fleet(list, question);
    REQUIRE(record.jobs[0].preemptions == 2);
    CHECK(record.jobs[0].waited_again.us == (ran == 600 ? 200 : 300) * second);
  }
}

// What became of all: to tell whether two runs are one.
auto outcome(const FleetRecord& record) {
  std::vector<std::array<std::int64_t, 5>> out;
  for (const JobRecord& job : record.jobs)
    out.push_back({job.start.us, job.end.us, job.stops, job.preemptions, job.waited_again.us});
  return out;
}

TEST_CASE("law: nobody starts again before its delay, and time adds up", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::int64_t kept_back = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const std::array fits = {JobFit::easy, JobFit::any, JobFit::block, JobFit::conservative};
    const ClusterJobs list = ranked_gangs(seed + round);
    FleetQuestion question = question_of(seed + round, fits[round % fits.size()]);
    RequeueDelay& rule = question.policy.requeue;
    rule.first.us = static_cast<std::int64_t>(1 + round % 7) * 40 * second;
    if (round % 2 == 0) rule.most.us = 400 * second;
    // By job: stops in a row, when it began, until when it may not.
    struct Row {
      std::int32_t stops = 0;
      FleetTime began, until;
    };
    std::map<std::uint32_t, Row> rows;
    question.tell = [&](const FleetEvent& event) {
      if (!is_of_job(event.kind)) return;
      Row& row = rows[event.job];
      if (event.kind == FleetEventKind::start) REQUIRE(event.at >= row.until);
      if (event.kind == FleetEventKind::start || event.kind == FleetEventKind::restart)
        row.began = event.at;
      if (event.kind != FleetEventKind::stop) return;
      const bool fresh_row = (event.at - row.began).us >= 2 * std::max(rule.first, rule.most).us;
      row.stops = fresh_row ? 1 : row.stops + 1;
      row.until = event.at + requeue_delay(rule, row.stops);
      ++kept_back;
    };
    const FleetRecord record = run_fleet(list, question);
    for (const JobRecord& job : record.jobs) REQUIRE(job.end != fleet_never);
    const FleetUse& use = record.use;
    CHECK(use.work.all() == use.held * 1'000'000);
    CHECK(use.held + use.short_of + use.scattered + use.idle + use.repair == use.all);
  }
  CHECK(kept_back > 300);
}

TEST_CASE("law: without a delay nothing is kept back", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  const ClusterJobs list = ranked_gangs(seed);
  FleetQuestion question = question_of(seed, JobFit::easy);
  const auto at_once = outcome(run_fleet(list, question));
  question.policy.requeue.most.us = 1000 * second;
  CHECK(outcome(run_fleet(list, question)) == at_once);
  question.policy.requeue.first.us = 1;
  CHECK(outcome(run_fleet(list, question)) != at_once);
}

// A loan may become the queue's own while its job is kept back.
TEST_CASE("law: loans of jobs that are kept back come to their ends", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 20; ++round) {
    ClusterJobs list = ranked_gangs(seed + round);
    list.queues = {"a", "b"};
    FleetQuestion question = question_of(seed + round, JobFit::any);
    question.quotas = {{.gpus = 40, .borrows = true}, {.gpus = 40, .borrows = true}};
    question.policy.requeue.first.us = 300 * second;
    const FleetRecord record = run_fleet(list, question);
    for (const JobRecord& job : record.jobs) REQUIRE(job.end != fleet_never);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
  }
}

}  // namespace
}  // namespace orrery
