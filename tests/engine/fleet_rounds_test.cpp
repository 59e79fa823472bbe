// SPDX-License-Identifier: Apache-2.0
// Tests laws of clusters that decide in rounds: jobs get sizes that they may have, nothing is lost,
// and one size is none.
#include <catch2/catch.hpp>
#include <set>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/gang_places.h"
#include "sim/engine/jobs/job_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;
constexpr RoundRule all_rules[] = {RoundRule::goodput, RoundRule::optimus, RoundRule::max_min,
                                   RoundRule::fair};

// Works 1 to 4: a step on 4, 8, 16 and 32 accelerators, which takes as much accelerator-time on
// each. Work 0: recorded lengths. All save.
FleetQuestion sizes_question(std::uint64_t seed, RoundRule rule) {
  FleetQuestion question;
  question.shape = {.hosts = 12, .gpus_per_host = 8, .last_host_gpus = 8};
  question.shape.levels = {{"leaf group", 4}};
  question.policy = {JobOrder::priority, JobFit::rounds, JobPlace::least_level};
  question.policy.preempts = true;
  question.loops.rounds.rule = rule;
  question.loops.rounds.every = {60 * second};
  question.seed = seed;
  question.works[0].save_steps = 60 * second;
  std::vector<WorkSize> sizes;
  for (const std::int32_t gpus : {4, 8, 16, 32}) {
    JobWork work;
    work.step_ps = INT64_C(96'000'000'000'000) / gpus;
    work.save_steps = 50;
    work.save_ps = 2'000'000'000'000;
    work.start.us = 20 * second;
    work.restart.us = 30 * second;
    sizes.push_back({gpus, static_cast<std::uint16_t>(question.works.size())});
    question.works.push_back(work);
  }
  question.sizes = {sizes, {sizes[1]}};
  return question;
}

// Half of them may have sizes and ask for 16, the others are recorded.
ClusterJobs mixed_jobs(std::uint64_t seed, std::size_t count) {
  return drawn_jobs(seed, count, 300, {second}, [&](RandomStream& random, ClusterJob& job) {
    job.priority = static_cast<std::int16_t>(random.below(2));
    job.preemptible = random.below(5) != 0;
    if (random.below(2) == 0) {
      job.gpus = 16;
      job.work = 3;
      job.sizes = 1;
      job.length.us = static_cast<std::int64_t>(1 + random.below(600)) * 6 * second;
    } else {
      job.gpus = drawn_gpus(random, 40);
      job.length.us = static_cast<std::int64_t>(1 + random.below(2000)) * second;
    }
    job.limit = job.length;
  });
}

BreakdownPlan some_breakdowns() {
  BreakdownPlan plan;
  plan.kinds = {{"process", Hertz(1 / 9000.0), 0, 0, {}, {}, {}},
                {"host", Hertz(1 / 6000.0), 1, 0.7, seconds(9'000), {}, {}}};
  plan.spare_hosts = 1;
  return plan;
}

TEST_CASE("law: jobs that change their sizes end, and their time adds up", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::int64_t moves = 0, preemptions = 0, stops = 0;
  for (std::uint64_t round = 0; round < 24; ++round) {
    const ClusterJobs list = mixed_jobs(seed + round, 120);
    FleetQuestion question = sizes_question(seed + round, all_rules[round % 4]);
    if (round % 3 == 0) question.breakdowns = some_breakdowns();
    question.look = [](FleetTime, const Slots& slots) {
      std::int64_t free = 0;
      for (std::int32_t h = 0; h < slots.shape().hosts; ++h) free += slots.free_of(h);
      REQUIRE(free == slots.free());
      REQUIRE(slots.free() + slots.held() + slots.out() == slots.total());
    };
    const FleetRecord record = run_fleet(list, question);
    const FleetUse& use = record.use;
    CHECK(use.held + use.short_of + use.scattered + use.idle + use.spare + use.repair == use.all);
    CHECK(use.work.all() == use.held * 1'000'000);
    GpuPicos useful = 0;
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const ClusterJob& job = list.jobs[i];
      const JobRecord& one = record.jobs[i];
      REQUIRE(one.end != fleet_never);
      const JobWork& work = question.works[job.work];
      useful += static_cast<GpuPicos>(steps_of(work, job.length)) * work.step_ps * job.gpus;
      if (!job.preemptible) REQUIRE(one.preemptions == 0);
      preemptions += one.preemptions;
      stops += one.stops;
    }
    CHECK(use.work.useful == useful);
    for (const SizedUse& sized : record.sized) {
      const ClusterJob& job = list.jobs[sized.job];
      CHECK(job.sizes == 1);
      CHECK(sized.held >= static_cast<GpuMicros>(sized.time.us) * 4);
      CHECK(sized.held <= static_cast<GpuMicros>(sized.time.us) * 32);
      if (!job.preemptible) CHECK(sized.moves == 0);
      moves += sized.moves;
    }
  }
  CHECK(moves > 200);
  CHECK(preemptions > 200);
  CHECK(stops > 50);
}

TEST_CASE("law: one size is none", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 8; ++round) {
    ClusterJobs list = mixed_jobs(seed + round, 80);
    FleetQuestion question = sizes_question(seed + round, all_rules[round % 4]);
    for (ClusterJob& job : list.jobs)
      if (job.sizes > 0) {
        job.gpus = 8;
        job.work = 2;
        job.sizes = 2;
      }
    const FleetRecord sized = run_fleet(list, question);
    for (ClusterJob& job : list.jobs) job.sizes = 0;
    question.sizes.clear();
    const FleetRecord rigid = run_fleet(list, question);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(sized.jobs[i].start == rigid.jobs[i].start);
      REQUIRE(sized.jobs[i].end == rigid.jobs[i].end);
      REQUIRE(sized.jobs[i].preemptions == rigid.jobs[i].preemptions);
    }
    CHECK(sized.use.work.useful == rigid.use.work.useful);
    CHECK(sized.use.work.starting == rigid.use.work.starting);
    CHECK(sized.power.nanojoules == rigid.power.nanojoules);
  }
}

ClusterJob sized_job(std::int64_t submit_s, std::int64_t steps, std::int16_t priority) {
  ClusterJob job{.submit = {submit_s * second}, .gpus = 16, .priority = priority};
  job.work = 3;
  job.sizes = 1;
  job.length = job.limit = {steps * 6 * second};
  return job;
}

TEST_CASE("a job grows where there is room, and shrinks for one of higher priority", "[fleet]") {
  FleetQuestion question = sizes_question(1, RoundRule::goodput);
  question.shape.hosts = 5;
  for (JobWork& work : question.works) work.save_steps = 0;
  for (std::size_t i = 1; i < question.works.size(); ++i) question.works[i].save_steps = 1000;
  ClusterJobs list;
  list.jobs = {sized_job(0, 100, 0)};
  // Alone: 32 accelerators from the first round on, 3 s a step.
  FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[0].start.us == 0);
  CHECK(record.jobs[0].end.us == (20 + 100 * 3) * second);
  CHECK(record.sized.at(0).moves == 0);
  // The other one comes after 90 s and gets 32 of 40 at 120 s. This one has done 33 steps and goes
  // on with 8, 12 s a step; it grows again once the other one is over.
  list.jobs.push_back(sized_job(90, 10, 1));
  record = run_fleet(list, question);
  CHECK(record.jobs[1].start.us == 120 * second);
  CHECK(record.jobs[1].end.us == (120 + 20 + 10 * 3) * second);
  CHECK(record.sized.at(0).moves == 2);
  CHECK(record.jobs[0].preemptions == 0);
  // On 8 from 120 s to 180 s: 2 s of the save and 20 s of the start, then 3 steps. Again 22 s, and
  // 64 steps of 3 s.
  CHECK(record.jobs[0].end.us == (180 + 22 + 64 * 3) * second);
}

// Hosts of eight; gangs of one to twenty that hold random places.
TEST_CASE("law: gangs of new sizes are whole, and those in front come first", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  RandomStream random(seed, 3);
  std::int64_t kept = 0, without = 0;
  for (int round = 0; round < 400; ++round) {
    Slots slots({.hosts = 8, .gpus_per_host = 8, .last_host_gpus = 8});
    Placer placer(JobPlace::random, seed + static_cast<std::uint64_t>(round));
    std::vector<Grants> held(10);
    std::vector<SizedGang> gangs(held.size());
    for (std::size_t i = 0; i < gangs.size(); ++i) {
      gangs[i].rank = static_cast<std::int32_t>(random.below(3));
      const auto size = static_cast<std::int32_t>(1 + random.below(20));
      if (random.below(4) != 0 && placer.find(slots, size, held[i])) slots.take(held[i]);
      gangs[i].now = &held[i];
      gangs[i].stays = !held[i].empty() && random.below(8) == 0;
      const bool same = !held[i].empty() && random.below(2) == 0;
      gangs[i].gpus = same ? size : static_cast<std::int32_t>(random.below(20));
    }
    Slots after = slots;
    place_gangs(after, placer, gangs);
    Slots checked({.hosts = 8, .gpus_per_host = 8, .last_host_gpus = 8});
    for (std::size_t i = 0; i < gangs.size(); ++i) {
      if (gangs[i].stays) CHECK(gangs[i].place == held[i]);
      if (gangs[i].gpus == 0 && !gangs[i].stays) CHECK(gangs[i].place.empty());
      std::int32_t gpus = 0;
      for (const HostGrant& grant : gangs[i].place) gpus += grant.hosts * grant.gpus;
      if (!gangs[i].place.empty() && !gangs[i].stays) CHECK(gpus == gangs[i].gpus);
      checked.take(gangs[i].place);  // which checks that no host is full
      kept += !held[i].empty() && gangs[i].place == held[i] ? 1 : 0;
      without += gangs[i].gpus > 0 && gangs[i].place.empty() ? 1 : 0;
    }
    CHECK(checked.free() == after.free());
    // Whoever has no place would have none if all behind it left.
    for (std::size_t i = 0; i < gangs.size(); ++i) {
      if (gangs[i].gpus == 0 || !gangs[i].place.empty()) continue;
      Slots room = after;
      for (std::size_t k = 0; k < gangs.size(); ++k) {
        const bool behind = gangs[k].rank != gangs[i].rank ? gangs[k].rank < gangs[i].rank
                                                           : gangs[k].gpus < gangs[i].gpus;
        if (behind && !gangs[k].stays) room.give(gangs[k].place);
      }
      CHECK(!Placer::fits(room, gangs[i].gpus));
    }
  }
  CHECK(kept > 500);
  CHECK(without > 200);
}

}  // namespace
}  // namespace orrery
