// SPDX-License-Identifier: Apache-2.0
// Tests what grace does to jobs that are stopped for others: they save in time, or lose work.
#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/job_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, ps_of_second = 1'000'000 * second;
constexpr FleetTime for_ever{INT64_C(1) << 60};

ClusterJobs ranked_jobs(std::uint64_t seed, std::size_t count) {
  return drawn_gangs(seed, count, [](RandomStream& random, ClusterJob& job) {
    job.priority = static_cast<std::int16_t>(random.below(3));
    job.preemptible = random.below(6) != 0;
    if (random.below(2) == 0)
      job.deadline.us = job.length.us + static_cast<std::int64_t>(random.below(1200)) * second;
  });
}

// Every rule that stops jobs one by one, with what breaks beside half of them.
FleetQuestion question_of(std::uint64_t round) {
  FleetQuestion question;
  question.seed = round;
  question.shape = small_cluster(10);
  constexpr std::tuple<JobOrder, JobFit> rules[] = {{JobOrder::priority, JobFit::easy},
                                                    {JobOrder::priority, JobFit::any},
                                                    {JobOrder::las, JobFit::any},
                                                    {JobOrder::priority, JobFit::block},
                                                    {JobOrder::deadline, JobFit::easy}};
  const auto [order, fit] = rules[round % 5];
  question.policy = {order, fit, JobPlace::pack};
  question.policy.preempts = true;
  question.policy.first_queue = GpuMicros{8} * 200 * second;
  question.policy.defragments = round % 4 == 1;
  JobWork& work = question.works[0];
  work.save_steps = 60 * second;
  work.start.us = 3 * second;
  work.restart.us = 7 * second;
  if (round % 2 == 1) {
    question.breakdowns.kinds = {{"process", Hertz(1 / 3000.0), 0, 0, {}, {}, {}},
                                 {"host", Hertz(1 / 5000.0), 1, 0.7, seconds(3000), {}, {}}};
    work.own_failures = Hertz(1 / 20'000.0);
    work.planned_stops = Hertz(1 / 20'000.0);
  }
  if (round % 3 == 0) question.policy.requeue = {.first = {40 * second}, .most = {90 * second}};
  return question;
}

bool same(const FleetRecord& a, const FleetRecord& b) {
  const auto of = [](const JobRecord& j) {
    return std::tuple(j.start, j.end, j.promise, j.stops, j.preemptions, j.moves, j.waited_again);
  };
  return a.events == b.events && a.last_end == b.last_end && a.use.held == b.use.held &&
         a.use.work.useful == b.use.work.useful && a.use.work.saving == b.use.work.saving &&
         a.use.work.preempted == b.use.work.preempted && a.use.work.lost == b.use.work.lost &&
         std::equal(a.jobs.begin(), a.jobs.end(), b.jobs.begin(), b.jobs.end(),
                    [&](const JobRecord& x, const JobRecord& y) { return of(x) == of(y); });
}

TEST_CASE("law: where saves take no time any grace is as none", "[fleet]") {
  const std::uint64_t seed = fresh(51);
  INFO("seed " << seed);
  std::int64_t preempted = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const ClusterJobs list = ranked_jobs(seed + round, 250);
    FleetQuestion question = question_of(round);
    const FleetRecord without = run_fleet(list, question);
    for (const FleetTime grace : {FleetTime{}, for_ever}) {
      question.policy.grace = grace;
      REQUIRE(same(without, run_fleet(list, question)));
    }
    for (const JobRecord& one : without.jobs) preempted += one.preemptions;
  }
  CHECK(preempted > 500);
}

// Saves of 20 s that count 15 s later.
TEST_CASE("law: accelerator-time adds up and nobody has one twice where jobs save first",
          "[fleet]") {
  const std::uint64_t seed = fresh(52);
  INFO("seed " << seed);
  std::int64_t preempted = 0, cut = 0;
  for (std::uint64_t round = 0; round < 60; ++round) {
    const ClusterJobs list = ranked_jobs(seed + round, 250);
    FleetQuestion question = question_of(round);
    question.works[0].save_ps = 20 * ps_of_second;
    question.works[0].write_ps = 15 * ps_of_second;
    question.policy.grace = std::vector<FleetTime>{{}, {25 * second}, for_ever}[round / 5 % 3];
    if (round % 7 == 6) question.horizon.us = 4'000 * second;
    std::vector<std::int32_t> held(10);
    std::map<std::uint32_t, FleetTime> since;
    GpuMicros sum = 0;
    question.tell = [&](const FleetEvent& event) {
      using enum FleetEventKind;
      const bool begins = event.kind == start;
      if (!begins && event.kind != stop && event.kind != end && event.kind != FleetEventKind::cut)
        return;
      if (begins) REQUIRE(since.emplace(event.job, event.at).second);
      if (!begins) {
        sum += static_cast<GpuMicros>(event.gpus) * (event.at - since.at(event.job)).us;
        since.erase(event.job);
      }
      for (const HostGrant& grant : *event.place)
        for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host) {
          std::int32_t& on = held[static_cast<std::size_t>(host)];
          on += begins ? grant.gpus : -grant.gpus;
          REQUIRE((on >= 0 && on <= 8));
        }
    };
    const FleetRecord record = run_fleet(list, question);
    const FleetUse& use = record.use;
    REQUIRE(sum == use.held);
    REQUIRE(use.work.all() == use.held * 1'000'000);
    REQUIRE(use.held + use.short_of + use.scattered + use.idle + use.spare + use.repair == use.all);
    for (const GpuPicos part :
         {use.work.useful, use.work.saving, use.work.starting, use.work.lost, use.work.preempted})
      REQUIRE(part >= 0);
    GpuPicos useful = 0;
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      preempted += record.jobs[i].preemptions;
      cut += record.cut ? 1 : 0;
      if (!record.cut) REQUIRE(record.jobs[i].end != fleet_never);
      useful += static_cast<GpuPicos>(list.jobs[i].length.us) * 1'000'000 * list.jobs[i].gpus;
    }
    if (!record.cut) REQUIRE(use.work.useful == useful);
  }
  CHECK(preempted > 1000);
  CHECK(cut > 0);
}

ClusterJob job_of(std::int64_t submit_s, std::int64_t length_s, std::int32_t gpus,
                  std::int16_t priority) {
  return {.submit = {submit_s * second},
          .length = {length_s * second},
          .limit = {length_s * second},
          .gpus = gpus,
          .priority = priority};
}

// Two hosts; saves every 600 s take 20 s, and count 10 s later.
FleetQuestion two_hosts(std::int64_t grace_s, JobFit fit) {
  FleetQuestion question;
  question.shape = {.hosts = 2, .gpus_per_host = 8, .last_host_gpus = 8};
  question.policy = {JobOrder::priority, fit, JobPlace::pack};
  question.policy.preempts = true;
  question.policy.grace = FleetTime{grace_s * second};
  question.works[0].save_steps = 600 * second;
  question.works[0].save_ps = 20 * ps_of_second;
  question.works[0].write_ps = 10 * ps_of_second;
  return question;
}

// The first is stopped at 100 s for the second, which needs both hosts. One is free: whoever would
// still run when the save is there waits; whoever ends before passes.
TEST_CASE("a place is promised to whoever waits for a save", "[fleet]") {
  for (const JobFit fit : {JobFit::easy, JobFit::any}) {
    ClusterJobs list;
    list.jobs = {job_of(0, 1000, 8, 0), job_of(100, 500, 16, 1), job_of(101, 200, 8, 0),
                 job_of(102, 20, 8, 0)};
    const FleetRecord record = run_fleet(list, two_hosts(30, fit));
    CHECK(record.jobs[0].preemptions == 1);
    CHECK(record.jobs[1].start == FleetTime{130 * second});
    CHECK(record.jobs[2].start > FleetTime{130 * second});
    CHECK(record.jobs[3].start == FleetTime{102 * second});
    // What it did counts, and the save is no part of its restart: 900 s from 630 s on, with a save.
    CHECK(record.jobs[0].end == FleetTime{(630 + 900 + 20) * second});
    CHECK(record.use.work.preempted == 0);
    CHECK(record.use.work.saving == GpuPicos{8} * (30 + 20) * ps_of_second);
    CHECK(record.use.work.starting == 0);
  }
}

TEST_CASE("whoever cannot save in time loses what is not saved, and leaves at once", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(0, 1000, 8, 0), job_of(700, 500, 16, 1)};
  const FleetRecord record = run_fleet(list, two_hosts(29, JobFit::easy));
  CHECK(record.jobs[1].start == FleetTime{700 * second});
  // Its save of 600 s was there at 630 s; 400 s are left.
  CHECK(record.use.work.preempted == GpuPicos{8} * 80 * ps_of_second);
  CHECK(record.jobs[0].end == FleetTime{(1200 + 400) * second});
}

// It is saved from 600 to 620 s, and that counts at 630 s.
TEST_CASE("a save that is under way is the last one", "[fleet]") {
  for (const std::int64_t grace : {19, 20}) {
    ClusterJobs list;
    list.jobs = {job_of(0, 1000, 8, 0), job_of(610, 500, 16, 1)};
    FleetQuestion question = two_hosts(grace, JobFit::easy);
    question.horizon = {1'100 * second};
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.jobs[1].start == FleetTime{(grace == 20 ? 630 : 610) * second});
    CHECK(record.use.work.saving == GpuPicos{grace == 20 ? 8 * 30 : 0} * ps_of_second);
    CHECK(record.use.work.preempted == GpuPicos{grace == 20 ? 0 : 8 * 610} * ps_of_second);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
  }
}

TEST_CASE("a save is lost where its host breaks", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(0, 1000, 8, 0), job_of(100, 500, 16, 1)};
  FleetQuestion question = two_hosts(30, JobFit::easy);
  question.breakdowns.incidents = {{"host 0", {110 * second}, {50 * second}, {0}}};
  const FleetRecord record = run_fleet(list, question);
  // It begins again on the other host, and is stopped once more as the first one is back.
  CHECK(record.jobs[0].preemptions == 2);
  CHECK(record.jobs[0].stops == 1);
  CHECK(record.jobs[1].start == FleetTime{190 * second});
  CHECK(record.use.work.lost == GpuPicos{8} * 110 * ps_of_second);
  CHECK(record.use.work.saving == GpuPicos{8} * (30 + 20) * ps_of_second);  // and that of 600 s
}

TEST_CASE("the end of a run cuts a save", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(0, 1000, 8, 0), job_of(100, 500, 16, 1)};
  FleetQuestion question = two_hosts(30, JobFit::easy);
  question.horizon = {112 * second};
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.use.work.useful == GpuPicos{8} * 100 * ps_of_second);
  CHECK(record.use.work.saving == GpuPicos{8} * 12 * ps_of_second);
  CHECK(record.use.work.all() == record.use.held * 1'000'000);
}

// A job of the highest priority comes while the first one saves for the second, and has its place.
TEST_CASE("whoever goes first has what saves free first", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(0, 1000, 8, 0), job_of(0, 1000, 8, 0), job_of(100, 500, 8, 1),
               job_of(110, 500, 8, 2)};
  const FleetRecord record = run_fleet(list, two_hosts(30, JobFit::any));
  CHECK(record.jobs[3].start == FleetTime{130 * second});
  CHECK(record.jobs[2].start == FleetTime{160 * second});
  CHECK(record.jobs[0].preemptions + record.jobs[1].preemptions == 2);
}

// It would be in time now, and is not once the other one has saved.
TEST_CASE("nobody is stopped for a deadline that the save itself would miss", "[fleet]") {
  for (const std::int64_t slack : {29, 30}) {
    ClusterJobs list;
    list.jobs = {job_of(0, 1000, 16, 0), job_of(100, 300, 16, 0)};
    list.jobs[1].deadline = {(300 + slack) * second};
    FleetQuestion question = two_hosts(30, JobFit::easy);
    question.policy.order = JobOrder::deadline;
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.jobs[0].preemptions == (slack == 30 ? 1 : 0));
    CHECK((record.jobs[1].end <= due(list.jobs[1])) == (slack == 30));
  }
}

// A limit that falls after an hour, to what one job draws: the other one saves first, above it.
TEST_CASE("power is drawn until a save is there, and is told", "[fleet]") {
  ClusterJobs list;
  list.jobs = {job_of(0, 9000, 8, 1), job_of(0, 9000, 8, 0)};
  FleetQuestion question = two_hosts(30, JobFit::easy);
  question.works[0].milliwatts = 700;
  question.idle_milliwatts = 100;
  question.power_limit_milliwatts = 2 * 8 * 700;
  question.hours.limits = {2 * 8 * 700, 8 * 700 + 8 * 100};
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[1].preemptions == 1);
  CHECK(record.power.over == FleetTime{30 * second});
  CHECK(record.power.suspended == 1);
  CHECK(record.use.work.preempted < GpuPicos{8} * ps_of_second);
}

TEST_CASE("law: the last save is there as soon as one could be", "[fleet]") {
  RandomStream random(fresh(53), 0);
  std::int64_t under_way = 0, fresh_ones = 0;
  for (int round = 0; round < 20'000; ++round) {
    JobWork work{.step_ps = static_cast<std::int64_t>(2 + random.below(40)) * 700'000};
    work.save_steps = static_cast<std::int64_t>(1 + random.below(12));
    work.save_ps = static_cast<std::int64_t>(random.below(60)) * 900'000;
    work.write_ps = static_cast<std::int64_t>(random.below(60)) * 1'100'000;
    JobRun run{.step_ps = work.step_ps, .done = static_cast<std::int64_t>(random.below(30))};
    run.saved = run.done;
    const std::int64_t steps = 1000;
    const auto later = [&](FleetTime from) {
      return from + FleetTime{static_cast<std::int64_t>(random.below(700))};
    };
    FleetTime at = later({});
    if (random.below(2) == 0) {
      run = at_other_speed(work, run, steps, at, work.step_ps * 2);
      at = later(at);
    }
    const LastSave save = last_save_of(work, run, steps, at);
    const RunReach reach = reach_of(work, run, steps, at);
    REQUIRE(at <= save.stops);
    REQUIRE(save.stops <= save.counts);
    REQUIRE((save.counts == at) >= (reach.saved >= reach.steps));
    const auto most = (work.save_ps + work.write_ps + 1'999'999) / 1'000'000;
    REQUIRE((save.counts - at).us <= most);
    // Whoever only goes on has these steps saved no sooner.
    REQUIRE(reach_of(work, run, steps, save.stops).steps >= reach.steps);
    for (FleetTime t = at; t < save.counts; t.us += 1)
      REQUIRE(reach_of(work, run, steps, t).saved < reach.steps);
    if (reach.saved >= reach.steps) continue;
    const bool goes_on = reach_of(work, run, steps, save.counts).saved >= reach.steps;
    (goes_on ? under_way : fresh_ones) += 1;
  }
  CHECK(under_way > 500);
  CHECK(fresh_ones > 500);
}

}  // namespace
}  // namespace orrery
