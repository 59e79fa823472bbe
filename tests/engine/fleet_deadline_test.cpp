// SPDX-License-Identifier: Apache-2.0
// Tests deadlines for which others are stopped: only where it helps, and nobody who has no time.
#include <catch2/catch.hpp>
#include <vector>

#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/job_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

FleetQuestion question_of(std::int32_t hosts, bool preempts) {
  FleetQuestion question;
  question.shape = small_cluster(hosts);
  question.policy = {JobOrder::deadline, JobFit::easy, JobPlace::pack};
  question.policy.preempts = preempts;
  question.works[0].save_steps = second;
  return question;
}

constexpr std::int64_t none = -1;

// `due_s` after its submission.
void add(ClusterJobs& list, std::int64_t submit_s, std::int64_t length_s, std::int32_t gpus,
         std::int64_t due_s) {
  list.jobs.push_back({.submit = {submit_s * second},
                       .length = {length_s * second},
                       .limit = {length_s * second},
                       .deadline = due_s == none ? fleet_never : FleetTime{due_s * second},
                       .gpus = gpus});
}

bool is_in_time(const ClusterJobs& list, const FleetRecord& record, std::size_t job) {
  return record.jobs[job].end <= due(list.jobs[job]);
}

TEST_CASE("whoever would be too late stops those with time", "[fleet]") {
  ClusterJobs list;
  add(list, 0, 500, 8, none);
  add(list, 0, 400, 8, 3'000);
  add(list, 100, 100, 8, 150);
  const FleetRecord waits = run_fleet(list, question_of(2, false));
  CHECK_FALSE(is_in_time(list, waits, 2));
  const FleetRecord stops = run_fleet(list, question_of(2, true));
  CHECK(is_in_time(list, stops, 2));
  // The one that has no deadline, not the one with time until 3,000 s.
  CHECK(stops.jobs[0].preemptions == 1);
  CHECK(stops.jobs[1].preemptions == 0);
}

TEST_CASE("nobody is stopped for a job that can wait, or is too late anyway", "[fleet]") {
  for (const std::int64_t due_s : {99, 500}) {
    ClusterJobs list;
    add(list, 0, 200, 8, none);
    add(list, 50, 100, 8, due_s);  // waits until 200, or cannot be in time
    const FleetRecord record = run_fleet(list, question_of(1, true));
    CHECK(record.jobs[0].preemptions == 0);
    CHECK(record.jobs[1].start.us == 200 * second);
  }
}

TEST_CASE("nobody is stopped who would be too late then", "[fleet]") {
  for (const std::int64_t slack : {99, 100}) {
    ClusterJobs list;
    add(list, 0, 400, 8, 400 + slack);  // 100 s are taken from it
    add(list, 50, 100, 8, 120);
    const FleetRecord record = run_fleet(list, question_of(1, true));
    CHECK((record.jobs[0].preemptions == 1) == (slack == 100));
    CHECK(is_in_time(list, record, 0));
    CHECK(is_in_time(list, record, 1) == (slack == 100));
  }
}

// The head needs both hosts; whoever has one of them for ten seconds more is due before it.
TEST_CASE("nobody is stopped for a job that is due later", "[fleet]") {
  ClusterJobs list;
  add(list, 0, 1'000, 8, none);
  add(list, 0, 60, 8, 200);
  add(list, 50, 100, 16, 300);
  const FleetRecord record = run_fleet(list, question_of(2, true));
  CHECK(record.jobs[0].preemptions == 1);
  CHECK(record.jobs[1].preemptions == 0);
  CHECK(record.jobs[2].start.us == 60 * second);
}

TEST_CASE("a restart counts among what one who is stopped has yet to do", "[fleet]") {
  for (const std::int64_t start : {30, 31}) {
    ClusterJobs list;
    add(list, 0, 400, 8, 400 + 100 + 60);
    add(list, 50, 70, 8, 110);
    FleetQuestion question = question_of(1, true);
    question.works[0].start.us = start * second;  // of both, and of the first one twice
    const FleetRecord record = run_fleet(list, question);
    CHECK((record.jobs[0].preemptions == 1) == (start == 30));
    CHECK(is_in_time(list, record, 0));
  }
}

TEST_CASE("law: deadlines stop only those that are due later and have time", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::int64_t stopped = 0, met = 0, met_without = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const ClusterJobs list =
        drawn_gangs(seed + round, 250, [](RandomStream& random, ClusterJob& job) {
          const auto slack = static_cast<std::int64_t>(random.below(20)) * 60 * second;
          if (random.below(3) > 0) job.deadline = job.length + FleetTime{slack};
          job.preemptible = random.below(6) > 0;
        });
    FleetQuestion question = question_of(10, true);
    std::vector<std::uint32_t> victims;
    std::vector<FleetTime> done(list.jobs.size()), began(list.jobs.size());
    question.tell = [&](const FleetEvent& event) {
      if (!is_of_job(event.kind)) return;
      if (event.kind == FleetEventKind::stop) {
        victims.push_back(event.job);
        done[event.job] += event.at - began[event.job];
      }
      if (event.kind != FleetEventKind::start) return;
      began[event.job] = event.at;
      const ClusterJob& head = list.jobs[event.job];
      for (const std::uint32_t victim : victims) {
        const ClusterJob& job = list.jobs[victim];
        REQUIRE(job.preemptible);
        REQUIRE(due(job) > due(head));
        if (due(job) == fleet_never) continue;
        REQUIRE(event.at + (head.length - done[event.job]) + (job.length - done[victim]) <=
                due(job));
      }
      stopped += static_cast<std::int64_t>(victims.size());
      victims.clear();
    };
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    const FleetRecord without = run_fleet(list, question_of(10, false));
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(record.jobs[i].end != fleet_never);
      if (list.jobs[i].deadline == fleet_never) continue;
      met += is_in_time(list, record, i) ? 1 : 0;
      met_without += is_in_time(list, without, i) ? 1 : 0;
    }
  }
  INFO("deadlines met: " << met << ", without stops " << met_without);
  CHECK(stopped > 200);
  CHECK(met > met_without);
}

}  // namespace
}  // namespace orrery
