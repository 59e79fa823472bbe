// SPDX-License-Identifier: Apache-2.0
// Tests laws of jobs that move while they run.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

ClusterJobs gangs(std::uint64_t seed) {
  return drawn_gangs(seed, 300, [](RandomStream& random, ClusterJob& job) {
    job.preemptible = random.below(4) != 0;
  });
}

FleetQuestion question_of(JobFit fit) {
  FleetQuestion question;
  question.shape = {.hosts = 10, .gpus_per_host = 8, .last_host_gpus = 8};
  question.policy = {JobOrder::fifo, fit, JobPlace::spread};
  question.policy.defragments = true;
  question.works[0].save_steps = 3600 * second;
  return question;
}

GpuMicros waits(const FleetRecord& record, const ClusterJobs& list) {
  GpuMicros sum = 0;
  for (std::size_t i = 0; i < list.jobs.size(); ++i)
    sum += (record.jobs[i].start - list.jobs[i].submit).us;
  return sum;
}

double seconds_of(GpuMicros sum) { return static_cast<double>(sum) * 1e-6; }

TEST_CASE("law: jobs move only when a head starts, and none loses time but by its move",
          "[fleet]") {
  const std::uint64_t seed = fresh(31);
  INFO("seed " << seed);
  std::int64_t moves = 0;
  for (std::uint64_t round = 0; round < 40; ++round) {
    const ClusterJobs list = gangs(seed + round);
    FleetQuestion question = question_of(round % 2 == 0 ? JobFit::block : JobFit::easy);
    const FleetTime start{static_cast<std::int64_t>(round % 4) * 5 * second};
    question.works[0].start = start;
    std::map<FleetTime, std::pair<int, int>> at;  // jobs that moved; others that started
    std::vector<bool> moved(list.jobs.size());
    question.tell = [&](const FleetEvent& event) {
      if (event.kind == FleetEventKind::stop) {
        REQUIRE(event.cause == "moved");
        REQUIRE(list.jobs[event.job].preemptible);
        moved[event.job] = true;
        ++at[event.at].first;
      } else if (event.kind == FleetEventKind::start) {
        if (moved[event.job]) REQUIRE(event.place->size() == 1);  // of single hosts
        if (!moved[event.job]) ++at[event.at].second;
        moved[event.job] = false;
      }
    };
    question.look = [&](FleetTime, const Slots& slots) {
      REQUIRE(slots.free() + slots.held() == slots.total());
      REQUIRE(std::find(moved.begin(), moved.end(), true) == moved.end());  // all are back
    };
    const FleetRecord record = run_fleet(list, question);
    for (const auto& [time, counts] : at) REQUIRE((counts.first == 0 || counts.second > 0));
    const FleetUse& use = record.use;
    CHECK(use.work.all() == use.held * 1'000'000);
    CHECK(use.held + use.short_of + use.scattered + use.idle == use.all);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const JobRecord& one = record.jobs[i];
      const FleetTime each = list.jobs[i].length + start;
      REQUIRE(one.end <= one.start + each + FleetTime{one.moves * start.us});
      REQUIRE(one.end >= one.start + each);
      moves += one.moves;
    }
  }
  CHECK(moves > 500);
}

TEST_CASE("law: moves that cost nothing spare a row of jobs the wait for whole hosts", "[fleet]") {
  const std::uint64_t seed = fresh(37);
  INFO("seed " << seed);
  GpuMicros never = 0, pays = 0, pool = 0, scattered = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    ClusterJobs list = gangs(seed + round);
    // Powers of two, as most are: they fill hosts without a rest.
    for (ClusterJob& job : list.jobs) {
      job.preemptible = true;
      job.gpus = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(job.gpus)));
    }
    FleetQuestion question = question_of(JobFit::block);
    const FleetRecord moved = run_fleet(list, question);
    pays += waits(moved, list);
    scattered += moved.use.scattered;
    question.policy.defragments = false;
    const FleetRecord stayed = run_fleet(list, question);
    never += waits(stayed, list);
    CHECK(moved.use.scattered < stayed.use.scattered);
    question.policy.place = JobPlace::pool;
    question.shape = pool_shape(80);
    pool += waits(run_fleet(list, question), list);
  }
  INFO("waits in s: " << seconds_of(never) << " " << seconds_of(pays) << " " << seconds_of(pool));
  CHECK(pool <= pays);
  CHECK(pays - pool < (never - pool) / 4);
  CHECK(scattered > 0);
}

TEST_CASE("law: moves that cost more than they win change nothing", "[fleet]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 10; ++round) {
    const ClusterJobs list = gangs(seed + round);
    FleetQuestion question = question_of(JobFit::easy);
    question.works[0].save_ps = INT64_C(1'000'000) * second * 1'000'000;
    const FleetRecord one = run_fleet(list, question);
    question.policy.defragments = false;
    const FleetRecord two = run_fleet(list, question);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(one.jobs[i].moves == 0);
      REQUIRE(one.jobs[i].end == two.jobs[i].end);
    }
  }
}

// Two groups of four hosts; whoever stands in both takes half as long again.
class TwoGroups : public PlacePrices {
 public:
  PlacePrice price(std::uint16_t /*work*/, const Grants& place) override {
    const bool both = place.front().host < 4 && place.back().host + place.back().hosts > 4;
    return {.step_ps = both ? 1'500'000 : 1'000'000};
  }
};

TEST_CASE("a job moves to a better place once it is free, if enough of it is left", "[fleet]") {
  TwoGroups prices;
  FleetQuestion question = question_of(JobFit::easy);
  question.shape = {.hosts = 8,
                    .gpus_per_host = 8,
                    .last_host_gpus = 8,
                    .levels = {{.name = "leaf group", .reach = 4}}};
  question.policy.place = JobPlace::least_level;
  question.works[0].priced = true;
  question.works[0].start.us = 100 * second;
  question.prices = &prices;
  // Three hosts of each group are held. A gang of two gets one of each, until the first ones end.
  const auto last_of = [&](std::int64_t length, bool defragments) {
    question.policy.defragments = defragments;
    ClusterJobs list;
    constexpr std::int64_t long_s = 100'000;
    const std::vector<std::pair<std::int32_t, std::int64_t>> asked = {
        {24, 500}, {24, long_s}, {16, length}};
    for (const auto& [gpus, seconds] : asked) {
      ClusterJob one;
      one.gpus = gpus;
      one.length.us = one.limit.us = seconds * second;
      list.jobs.push_back(one);
    }
    return run_fleet(list, question).jobs[2];
  };
  const JobRecord stays = last_of(10'000, false), moves = last_of(10'000, true);
  CHECK(stays.end.us == 15'100 * second);
  CHECK(moves.moves == 1);
  // At 600 s it has a third of 500 s to go without, starts again for 100 s, and is as fast as
  // alone.
  const std::int64_t done = 500 * second / 3 * 2;
  CHECK(std::abs(moves.end.us - (700 * second + 10'000 * second - done)) < 10);
  CHECK(last_of(400, true).moves == 0);
}

}  // namespace
}  // namespace orrery
