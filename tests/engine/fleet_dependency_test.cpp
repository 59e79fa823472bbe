// SPDX-License-Identifier: Apache-2.0
// Tests jobs that come after others: none starts before these have ended, under any policy.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"
#include "workloads/cluster_job/job_dependencies.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;
constexpr std::int32_t hosts = 10;

void add(ClusterJobs& list, std::int64_t submit_s, std::int64_t length_s, std::int32_t gpus,
         JobFate fate = JobFate::completed) {
  list.jobs.push_back({.submit = {submit_s * second},
                       .length = {length_s * second},
                       .limit = {length_s * second},
                       .gpus = gpus,
                       .row = static_cast<std::uint32_t>(list.jobs.size() + 1),
                       .fate = fate});
}

FleetQuestion question_of(JobOrder order, JobFit fit) {
  FleetQuestion question;
  question.shape = small_cluster(hosts);
  question.policy = {order, fit, JobPlace::pack};
  question.policy.preempts = fit == JobFit::rounds;  // it takes places away
  return question;
}

std::vector<FleetQuestion> all_questions() {
  std::vector<FleetQuestion> out;
  for (const JobOrder order :
       {JobOrder::fifo, JobOrder::sjf, JobOrder::priority, JobOrder::las, JobOrder::deadline})
    for (const JobFit fit : {JobFit::block, JobFit::easy, JobFit::any})
      out.push_back(question_of(order, fit));
  for (const JobFit fit :
       {JobFit::slurm, JobFit::rounds, JobFit::conservative, JobFit::gang_timeout})
    out.push_back(question_of(JobOrder::priority, fit));
  out.push_back(question_of(JobOrder::priority, JobFit::easy));
  out.back().policy.preempts = true;
  return out;
}

// A third of all comes after up to three others, mostly such as were submitted before; some fail,
// some ask for more than there is.
ClusterJobs random_graph(std::uint64_t seed) {
  ClusterJobs list = random_jobs(seed, 150, 88, seed % 2 == 0);
  RandomStream random(seed, 9);
  std::vector<std::uint64_t> rank;
  for (std::uint32_t i = 0; i < list.jobs.size(); ++i) {
    ClusterJob& job = list.jobs[i];
    job.priority = static_cast<std::int16_t>(random.below(3));
    const std::uint64_t end = random.below(8);
    if (end < 2) job.fate = end == 0 ? JobFate::failed : JobFate::cancelled;
    if (random.below(3) == 0) job.deadline = {job.length.us + 3'600 * second};
    rank.push_back(i + random.below(12));
  }
  for (std::uint32_t i = 0; i < list.jobs.size(); ++i)
    for (std::uint64_t n = random.below(3) == 0 ? 1 + random.below(3) : 0; n > 0; --n) {
      const auto after =
          static_cast<std::uint32_t>(random.below(std::min<std::size_t>(list.jobs.size(), i + 12)));
      if (rank[after] >= rank[i]) continue;
      const std::int64_t think = random.below(2) == 0 ? 0 : 7 * second;
      list.dependencies.push_back({i, after, random.below(2) == 0, {think}});
    }
  REQUIRE(dependency_circle(list).empty());
  return list;
}

// When a job may start: its submission, and the ends of all that it comes after, were it not
// cancelled. Those that never end: fleet_never.
FleetTime earliest(const ClusterJobs& list, const FleetRecord& record, std::uint32_t job) {
  FleetTime from = list.jobs[job].submit;
  for (const JobDependency& one : list.dependencies) {
    if (one.job != job) continue;
    const JobRecord& before = record.jobs[one.after];
    // Whoever was cancelled or rejected ended as that came to be known.
    FleetTime end = before.end;
    if (before.cancelled) end = eligible(list.jobs[one.after], before);
    if (before.rejected) end = list.jobs[one.after].submit;
    if (end == fleet_never) return fleet_never;
    from = std::max(from, end + one.think);
  }
  return from;
}

void check_little(const ClusterJobs& list, const FleetRecord& record) {
  GpuMicros area = 0, waits = 0;
  for (const TimelinePart& part : record.timeline.parts) area += part.waiting;
  for (std::size_t i = 0; i < list.jobs.size(); ++i)
    if (record.jobs[i].start != fleet_never)
      waits += (record.jobs[i].start - eligible(list.jobs[i], record.jobs[i])).us +
               record.jobs[i].waited_again.us;
  CHECK(static_cast<std::int64_t>(area) == static_cast<std::int64_t>(waits));
}

TEST_CASE("law: no job starts before those that it comes after have ended", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::int64_t held = 0, cancelled = 0;
  for (std::uint64_t round = 0; round < 8; ++round) {
    const ClusterJobs list = random_graph(seed + round);
    const std::vector<bool> expected =
        cancelled_jobs(list, [](const ClusterJob& job) { return job.gpus > hosts * 8; });
    for (const FleetQuestion& question : all_questions()) {
      INFO("round " << round << " order " << static_cast<int>(question.policy.order) << " fit "
                    << static_cast<int>(question.policy.fit));
      const FleetRecord record = run_fleet(list, question);
      for (std::uint32_t i = 0; i < list.jobs.size(); ++i) {
        const JobRecord& one = record.jobs[i];
        REQUIRE(one.rejected == (list.jobs[i].gpus > hosts * 8));
        REQUIRE_FALSE(one.still_held);
        if (one.rejected) continue;
        REQUIRE(one.cancelled == expected[i]);
        cancelled += one.cancelled ? 1 : 0;
        if (one.cancelled) {
          REQUIRE(one.start == fleet_never);
          continue;
        }
        REQUIRE(eligible(list.jobs[i], one) == earliest(list, record, i));
        REQUIRE(one.start >= eligible(list.jobs[i], one));
        REQUIRE(one.end != fleet_never);
        held += one.held.us > 0 ? 1 : 0;
      }
      check_little(list, record);
      CHECK(record.use.work.all() == record.use.held * 1'000'000);
      CHECK(record.use.held + record.use.short_of + record.use.scattered + record.use.idle ==
            record.use.all);
    }
  }
  CHECK(held > 1'000);
  CHECK(cancelled > 500);
}

TEST_CASE("law: jobs that come after others do so while hosts break and runs are cut", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::int64_t stops = 0, still_held = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const ClusterJobs list = random_graph(seed + round);
    FleetQuestion question = question_of(JobOrder::priority, JobFit::easy);
    question.seed = seed + round;
    question.policy.preempts = true;
    question.policy.requeue.first.us = 60 * second;
    question.works[0].save_steps = 60 * second;
    question.breakdowns.kinds = {{"host", Hertz(1 / 500.0), 1, 0.6, seconds(900), {}, {}}};
    if (round % 2 == 0) question.horizon = {1'500 * second};
    const FleetRecord record = run_fleet(list, question);
    for (std::uint32_t i = 0; i < list.jobs.size(); ++i) {
      const JobRecord& one = record.jobs[i];
      stops += one.stops;
      still_held += one.still_held ? 1 : 0;
      if (one.still_held) REQUIRE(one.start == fleet_never);
      if (one.still_held) REQUIRE(eligible(list.jobs[i], one) == record.last_end);
      if (one.start != fleet_never) REQUIRE(one.start >= earliest(list, record, i));
      const bool open = one.start == fleet_never || one.end == fleet_never;
      if (round % 2 == 1) REQUIRE(open == (one.cancelled || one.rejected));
    }
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
  }
  CHECK(stops > 40);
  CHECK(still_held > 20);
}

TEST_CASE("a chain takes the sum of its lengths, wherever others could start", "[fleet]") {
  for (const FleetQuestion& question : all_questions()) {
    if (question.policy.fit == JobFit::slurm || question.policy.fit == JobFit::rounds)
      continue;  // which decide at times of their own
    ClusterJobs list;
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < 50; ++i) {
      add(list, 0, 1 + i % 7, 1);
      if (i > 0) list.dependencies.push_back({i, i - 1});
      sum += 1 + i % 7;
    }
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.last_end.us == sum * second);
    for (const JobRecord& one : record.jobs) REQUIRE(one.start == one.held);
  }
}

TEST_CASE("times to think, and jobs that go on whatever became of others", "[fleet]") {
  ClusterJobs list;
  add(list, 0, 100, 8, JobFate::failed);
  add(list, 10, 20, 8);   // after it, in any case, by 30 s
  add(list, 10, 20, 8);   // if it had completed
  add(list, 20, 20, 8);   // after the second and, in any case, the third
  add(list, 30, 20, 88);  // more than there is
  add(list, 40, 20, 8);   // if that had completed
  add(list, 200, 20, 8);  // comes long after the end of the first
  list.dependencies = {{1, 0, true, {30 * second}}, {2, 0}, {3, 1}, {3, 2, true}, {5, 4},
                       {6, 0, true, {30 * second}}};
  std::map<std::uint32_t, std::vector<FleetEventKind>> told;
  FleetQuestion question = question_of(JobOrder::fifo, JobFit::block);
  question.tell = [&](const FleetEvent& event) {
    if (is_of_job(event.kind)) told[event.job].push_back(event.kind);
  };
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[1].start.us == 130 * second);
  CHECK(record.jobs[1].held.us == 120 * second);
  CHECK(record.jobs[2].cancelled);
  CHECK(record.jobs[2].held.us == 90 * second);
  CHECK(record.jobs[3].start.us == 150 * second);
  CHECK(record.jobs[4].rejected);
  CHECK(record.jobs[5].cancelled);
  CHECK(record.jobs[5].held.us == 0);
  CHECK(record.jobs[6].start.us == 200 * second);
  CHECK(record.jobs[6].held.us == 0);
  using enum FleetEventKind;
  CHECK(told[1] == std::vector{submit, eligible, start, end});
  CHECK(told[2] == std::vector{submit, cancel});
  CHECK(told[4] == std::vector{reject});
  CHECK(told[5] == std::vector{submit, cancel});
  CHECK(told[6] == std::vector{submit, start, end});
}

// 10^5 jobs that are cancelled at one instant, one after another.
TEST_CASE("a long chain is cancelled at once", "[fleet]") {
  ClusterJobs list;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    add(list, 0, 1, 1, i == 0 ? JobFate::failed : JobFate::completed);
    if (i > 0) list.dependencies.push_back({i, i - 1});
  }
  const FleetRecord record = run_fleet(list, question_of(JobOrder::fifo, JobFit::easy));
  CHECK(record.last_end.us == second);
  CHECK(std::all_of(record.jobs.begin() + 1, record.jobs.end(),
                    [](const JobRecord& one) { return one.cancelled; }));
}

// Until it is eligible a job is in nobody's way: the one behind it starts, and its wait is told
// from then on.
TEST_CASE("a job that is held stands in no queue", "[fleet]") {
  ClusterJobs list;
  add(list, 0, 100, 40);
  add(list, 1, 50, 80);  // after it
  add(list, 2, 300, 40);
  list.dependencies = {{1, 0}};
  FleetQuestion question = question_of(JobOrder::fifo, JobFit::block);
  question.watch = 1;
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[2].start.us == 2 * second);
  CHECK(record.jobs[1].held.us == 99 * second);
  CHECK(record.jobs[1].start.us == 302 * second);
  REQUIRE(record.story);
  CHECK(record.story->short_of.us == 202 * second);
  CHECK(record.story->free_then == 40);
}

}  // namespace
}  // namespace orrery
