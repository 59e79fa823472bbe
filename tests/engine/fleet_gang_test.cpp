// SPDX-License-Identifier: Apache-2.0
// Tests gangs that hold what is free until they are whole: what that costs, and that it ends.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

FleetQuestion question_of(std::int32_t hosts, std::int64_t timeout_s) {
  FleetQuestion question;
  question.shape = small_cluster(hosts);
  question.policy = {JobOrder::priority, JobFit::gang_timeout, JobPlace::pack};
  question.policy.gang_timeout.us = timeout_s * second;
  return question;
}

void add(ClusterJobs& list, std::int64_t submit_s, std::int64_t length_s, std::int32_t gpus,
         std::int16_t priority = 0) {
  list.jobs.push_back({.submit = {submit_s * second},
                       .length = {length_s * second},
                       .limit = {length_s * second},
                       .gpus = gpus,
                       .priority = priority});
}

TEST_CASE("a gang holds what is free until it is whole, and keeps others off it", "[fleet]") {
  ClusterJobs list;
  add(list, 0, 100, 16);
  add(list, 0, 50, 8);
  add(list, 10, 30, 24);  // has one host from 10, two from 50, three from 100 on
  add(list, 20, 30, 8);   // would fit on the host that the gang holds
  const FleetRecord record = run_fleet(list, question_of(4, 1'000));
  CHECK(record.jobs[2].start.us == 100 * second);
  CHECK(record.jobs[2].hosts == 3);
  CHECK(record.jobs[3].start.us == 100 * second);
  CHECK(record.gangs.given_up == 0);
  CHECK(record.gangs.held == GpuMicros{8 * 40 + 16 * 50} * second);
  CHECK(record.use.short_of == record.gangs.held);
  // Who asks for whole gangs alone lets the small one pass.
  FleetQuestion whole = question_of(4, 1'000);
  whole.policy.fit = JobFit::any;
  CHECK(run_fleet(list, whole).jobs[3].start.us == 20 * second);
}

// Each of two gangs has one host of two, and waits for the other one's. Where a third job runs the
// first of them gives up alone; where nobody does both give up, and the first in line has all.
TEST_CASE("gangs that wait for each other go on after the timeout", "[fleet]") {
  for (const bool third : {false, true}) {
    ClusterJobs list;
    add(list, 0, 20, 8);
    add(list, 0, 40, 8);
    if (third) add(list, 0, 5'000, 8, 2);
    add(list, 10, 60, 16);     // holds the first host from 20 on
    add(list, 30, 60, 16, 1);  // comes in front of it, and holds the second one from 40 on
    const std::size_t last = list.jobs.size() - 1;
    for (const std::int64_t timeout : {100, 1'000}) {
      const FleetRecord record = run_fleet(list, question_of(third ? 3 : 2, timeout));
      CHECK(record.gangs.given_up == (third ? 1 : 2));
      CHECK(record.jobs[last].start.us == (20 + timeout) * second);
      CHECK(record.jobs[last - 1].start == record.jobs[last].end);
    }
  }
}

TEST_CASE("a gang that gave up stands behind those that came after it", "[fleet]") {
  ClusterJobs list;
  add(list, 0, 1'000, 8);
  add(list, 10, 50, 16);  // holds the second host from 10 on, until 110
  add(list, 20, 200, 8);  // takes it then
  add(list, 30, 200, 8);
  FleetQuestion question = question_of(2, 100);
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[2].start.us == 110 * second);
  CHECK(record.jobs[3].start.us == 310 * second);
  // Kept back for a while, it is not there when a host is free.
  question.policy.requeue.first.us = 900 * second;
  const FleetRecord held = run_fleet(list, question);
  CHECK(held.jobs[3].start.us == 310 * second);
  CHECK(held.use.idle >= GpuMicros{8} * 490 * second);
  CHECK(held.jobs[1].start.us == 1'010 * second);
}

// Where hosts break, jobs that hold accelerators and run do not know what waits beside them.
FleetQuestion drawn_question(std::uint64_t seed, std::uint64_t round) {
  const std::array places = {JobPlace::pack,          JobPlace::spread, JobPlace::least_level,
                             JobPlace::fragmentation, JobPlace::random, JobPlace::pool};
  FleetQuestion question = question_of(10, static_cast<std::int64_t>(30 + 100 * (round % 4)));
  question.policy.place = places[round % places.size()];
  question.seed = seed;
  if (question.policy.place == JobPlace::pool) {
    question.shape = pool_shape(80);
  } else if (round % 2 == 0) {
    question.breakdowns.kinds = {{"host", Hertz(1 / 500.0), 1, 0.6, seconds(900), {}, {}},
                                 {"leaf", Hertz(1 / 4000.0), 2, 0.6, seconds(900), {}, {}}};
    question.breakdowns.spare_hosts = static_cast<std::int32_t>(round % 3);
  }
  if (round % 3 == 0) question.policy.requeue = {.first = {20 * second}, .most = {90 * second}};
  return question;
}

TEST_CASE("law: gangs run whole, hold no accelerator twice, and none waits for ever", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::int64_t given_up = 0, broke = 0;
  for (std::uint64_t round = 0; round < 40; ++round) {
    const ClusterJobs list =
        drawn_gangs(seed + round, 250, [](RandomStream& random, ClusterJob& job) {
          job.priority = static_cast<std::int16_t>(random.below(3));
        });
    FleetQuestion question = drawn_question(seed + round, round);
    std::map<std::int32_t, std::int32_t> held;  // by host
    std::map<std::uint32_t, Grants> places;
    const auto change = [&](const Grants& place, std::int32_t sign) {
      for (const HostGrant& grant : place)
        for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host) {
          held[host] += sign * grant.gpus;
          REQUIRE(held[host] <= question.shape.gpus_per_host);
        }
    };
    question.tell = [&](const FleetEvent& event) {
      if (!is_of_job(event.kind)) return;
      if (event.kind == FleetEventKind::start && event.place != nullptr) {
        REQUIRE(gpus_of_place(*event.place) == list.jobs[event.job].gpus);
        std::int32_t hosts = 0;
        for (const HostGrant& grant : *event.place) hosts += grant.hosts;
        if (question.shape.hosts > 1) REQUIRE(hosts == (list.jobs[event.job].gpus + 7) / 8);
        REQUIRE(std::is_sorted(
            event.place->begin(), event.place->end(),
            [](const HostGrant& a, const HostGrant& b) { return a.host + a.hosts <= b.host; }));
        places[event.job] = *event.place;
        change(*event.place, 1);
      }
      const bool leaves = event.kind == FleetEventKind::stop || event.kind == FleetEventKind::end;
      if (leaves && places.contains(event.job)) {
        change(places.at(event.job), -1);
        places.erase(event.job);
      }
    };
    const FleetRecord record = run_fleet(list, question);
    for (const JobRecord& job : record.jobs) REQUIRE(job.end != fleet_never);
    const FleetUse& use = record.use;
    CHECK(use.held + use.short_of + use.scattered + use.idle + use.spare + use.repair == use.all);
    CHECK(record.gangs.gpus == 0);
    CHECK(record.gangs.held <= use.short_of);
    given_up += record.gangs.given_up;
    for (const BreakdownCount& count : record.breakdowns) broke += count.struck;
  }
  CHECK(given_up > 100);
  CHECK(broke > 100);
}

TEST_CASE("law: where no gang has several hosts nobody holds anything", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 10; ++round) {
    const ClusterJobs list =
        drawn_gangs(seed + round, 250, [](RandomStream& random, ClusterJob& job) {
          job.priority = static_cast<std::int16_t>(random.below(3));
          job.gpus = 1 + (job.gpus - 1) % 8;
        });
    FleetQuestion question = question_of(4, 60);
    const FleetRecord gangs = run_fleet(list, question);
    question.policy.fit = JobFit::any;
    const FleetRecord any = run_fleet(list, question);
    CHECK(gangs.gangs.held == 0);
    for (std::size_t i = 0; i < list.jobs.size(); ++i)
      REQUIRE(gangs.jobs[i].start == any.jobs[i].start);
  }
}

}  // namespace
}  // namespace orrery
