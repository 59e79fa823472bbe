// SPDX-License-Identifier: Apache-2.0
// Tests laws of jobs that must stand under one group of a level of switches.
#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/placer.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

// Of hosts of eight, 2 a leaf group, 4 a pod. Every third job stands within one of either.
ClusterJobs gangs(std::uint64_t seed) {
  return drawn_gangs(seed, 300, [](RandomStream& random, ClusterJob& job) {
    job.within = static_cast<std::uint16_t>(random.below(3));
    job.priority = static_cast<std::int16_t>(random.below(2));
  });
}

FleetQuestion question_of(std::uint64_t round) {
  constexpr JobPlace places[] = {
      JobPlace::pack,          JobPlace::spread,           JobPlace::least_level,
      JobPlace::fragmentation, JobPlace::least_contention, JobPlace::random};
  FleetQuestion question;
  question.shape = small_cluster(11);  // the last group of either level is part full
  question.within = {0, 1};
  const bool stops = round % 3 == 0;
  question.policy = {stops ? JobOrder::priority : JobOrder::fifo,
                     round % 2 == 0 ? JobFit::easy : JobFit::any,
                     places[round % std::size(places)]};
  question.policy.preempts = stops;
  question.policy.defragments = round % 5 == 0;
  question.works[0].save_steps = 60 * second;
  return question;
}

std::int32_t group_of(std::int32_t host, std::size_t level, const SlotShape& shape) {
  return host / shape.levels[level].reach;
}

TEST_CASE("law: who must stand within a level does, and nobody waits beside a place", "[fleet]") {
  const std::uint64_t seed = fresh(43);
  INFO("seed " << seed);
  std::int64_t within = 0, rejected = 0;
  for (std::uint64_t round = 0; round < 60; ++round) {
    const ClusterJobs list = gangs(seed + round);
    FleetQuestion question = question_of(round);
    question.tell = [&](const FleetEvent& event) {
      if (event.kind != FleetEventKind::start || list.jobs[event.job].within == 0) return;
      const std::size_t level = list.jobs[event.job].within - 1U;
      const HostGrant& last = event.place->back();
      REQUIRE(group_of(event.place->front().host, level, question.shape) ==
              group_of(last.host + last.hosts - 1, level, question.shape));
      ++within;
    };
    question.look = [&](FleetTime, const Slots& slots) {
      REQUIRE(slots.free() + slots.held() == slots.total());
    };
    const FleetRecord record = run_fleet(list, question);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const ClusterJob& job = list.jobs[i];
      const bool fits = job.within == 0 || job.gpus <= 16 * job.within;
      REQUIRE(record.jobs[i].rejected == !fits);
      REQUIRE((record.jobs[i].end != fleet_never) == fits);
      rejected += fits ? 0 : 1;
    }
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
  }
  CHECK(within > 5'000);
  CHECK(rejected > 500);
}

// By hand: every host of a group, over all groups.
bool has_room(const Slots& slots, std::int32_t gpus, std::size_t level) {
  const SlotShape& shape = slots.shape();
  for (std::int32_t g = 0; g < slots.groups(level); ++g) {
    std::int32_t whole = 0, rest = 0;
    for (std::int32_t host = 0; host < shape.hosts; ++host) {
      if (group_of(host, level, shape) != g) continue;
      whole += slots.free_of(host) == 8 ? 1 : 0;
      if (slots.free_of(host) < 8) rest = std::max(rest, slots.free_of(host));
    }
    const std::int32_t needed = gpus / 8;
    if (whole > needed || (whole == needed && rest >= gpus % 8)) return true;
  }
  return false;
}

TEST_CASE("law: a place within a level is found wherever there is one", "[fleet]") {
  const std::uint64_t seed = fresh(47);
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  int found = 0;
  for (int round = 0; round < 4'000; ++round) {
    Slots slots(small_cluster(11));
    for (std::int32_t host = 0; host < 11; ++host) {
      const auto taken = static_cast<std::int32_t>(random.below(3) * random.below(5));
      if (taken == 0) continue;
      const HostGrant grant{.host = host, .hosts = 1, .gpus = taken};
      slots.take({&grant, 1});
    }
    const auto gpus = static_cast<std::int32_t>(1 + random.below(32));
    const auto level = static_cast<std::int32_t>(random.below(2));
    for (const JobPlace rule :
         {JobPlace::pack, JobPlace::spread, JobPlace::least_level, JobPlace::fragmentation,
          JobPlace::least_contention, JobPlace::random}) {
      Grants place;
      Placer placer(rule, seed);
      const bool is = placer.find(slots, gpus, place, level);
      REQUIRE(is == has_room(slots, gpus, static_cast<std::size_t>(level)));
      if (!is) continue;
      REQUIRE(gpus_of_place(place) == gpus);
      slots.take(place);  // it is free, or a check fails
      slots.give(place);
      ++found;
    }
  }
  CHECK(found > 4'500);
  CHECK(found < 19'500);
}

}  // namespace
}  // namespace orrery
