// SPDX-License-Identifier: Apache-2.0
// Tests laws of priorities, preemption and quotas of a shared cluster.
#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

ClusterJobs jobs_of_queues(std::uint64_t seed, std::size_t count, int queues) {
  return drawn_gangs(seed, count, [&](RandomStream& random, ClusterJob& job) {
    job.queue = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(queues)));
    job.priority = static_cast<std::int16_t>(random.below(3));
    job.preemptible = random.below(4) != 0;
  });
}

FleetQuestion question_of(std::uint64_t seed) {
  FleetQuestion question;
  question.shape = {.hosts = 10, .gpus_per_host = 8, .last_host_gpus = 8};
  question.policy = {JobOrder::priority, JobFit::easy, JobPlace::pack};
  question.policy.preempts = true;
  question.seed = seed;
  question.works[0].save_steps = 60 * second;
  question.works[0].save_ps = 2 * second * 1'000'000;
  return question;
}

TEST_CASE("law: preempted jobs end, and their time adds up", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::int64_t preempted = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const ClusterJobs list = jobs_of_queues(seed + round, 300, 1);
    FleetQuestion question = question_of(seed);
    question.policy.preempt_after.us = static_cast<std::int64_t>(round % 3) * 200 * second;
    if (round % 2 == 0) question.works[0] = JobWork{};  // nothing is saved
    const FleetRecord record = run_fleet(list, question);
    const FleetUse& use = record.use;
    CHECK(use.work.all() == use.held * 1'000'000);
    CHECK(use.held + use.short_of + use.scattered + use.idle == use.all);
    const std::int64_t before = preempted;
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(record.jobs[i].end != fleet_never);
      REQUIRE(record.jobs[i].end >= record.jobs[i].start + list.jobs[i].length);
      preempted += record.jobs[i].preemptions;
      if (list.jobs[i].priority == 2 || !list.jobs[i].preemptible)
        REQUIRE(record.jobs[i].preemptions == 0);
    }
    if (round % 2 == 0) CHECK(use.work.saving == 0);
    // Of who saves first only what was left of a step or a save is lost.
    const GpuPicos most = GpuPicos{80} * 3'000'000 * 1'000'000;
    CHECK((use.work.preempted > most * (preempted - before)) == (round % 2 == 0));
  }
  CHECK(preempted > 500);
}

TEST_CASE("law: preemption under a limit of power breaks no count", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::int64_t preempted = 0;
  for (std::uint64_t round = 0; round < 60; ++round) {
    const ClusterJobs list = jobs_of_queues(seed + round, 300, 1);
    FleetQuestion question = question_of(seed);
    question.works[0].start.us = 200 * second;
    question.works[0].milliwatts = 900'000;
    question.idle_milliwatts = 200'000;
    if (round % 10 == 0) question.shape.hosts = 1;
    question.shape.gpus_per_host = question.shape.last_host_gpus = round % 10 == 0 ? 80 : 8;
    question.power_limit_milliwatts =
        80 * 200'000 + 700'000 * static_cast<std::int64_t>(41 + round % 30);
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    CHECK(record.power.most_milliwatts <= question.power_limit_milliwatts);
    for (const JobRecord& one : record.jobs) preempted += one.preemptions;
  }
  CHECK(preempted > 500);
}

// Whoever has the highest priority sees a cluster without the others, where all can be stopped at
// once.
TEST_CASE("law: jobs of the highest priority wait as if they were alone", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 20; ++round) {
    ClusterJobs all = jobs_of_queues(seed + round, 200, 1), first;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < all.jobs.size(); ++i) {
      ClusterJob& job = all.jobs[i];
      job.preemptible = true;
      job.gpus = 8 * ((job.gpus + 7) / 8);  // whole hosts: places do not matter
      if (job.priority != 2) continue;
      first.jobs.push_back(job);
      places.push_back(i);
    }
    FleetQuestion question = question_of(seed);
    question.policy.fit = JobFit::block;
    question.works[0] = JobWork{};
    const FleetRecord with = run_fleet(all, question), alone = run_fleet(first, question);
    for (std::size_t k = 0; k < places.size(); ++k)
      REQUIRE(with.jobs[places[k]].start == alone.jobs[k].start);
  }
}

// Jobs that never leave the first queue see a cluster without those that have left it: here gangs
// of one host that are long from the start, which one that comes later stops.
TEST_CASE("law: whoever has had little is not held up by those who had much", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  std::int64_t moved = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    ClusterJobs list = jobs_of_queues(seed + round, 200, 1);
    RandomStream random(seed + round, 9);
    for (ClusterJob& job : list.jobs) {
      job.gpus = 8;
      job.preemptible = true;
      if (random.below(4) == 0) job.length.us *= 40;
      job.limit = job.length;
    }
    FleetQuestion question = question_of(seed);
    question.policy.order = JobOrder::las;
    question.policy.fit = JobFit::any;
    question.policy.first_queue = GpuMicros{8} * 900 * second;
    question.works[0] = JobWork{};
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    // At no time a job of the first queue waits while one of the second holds a host.
    const auto had = [&](std::size_t i, FleetTime at) {
      return record.jobs[i].start == fleet_never || at <= record.jobs[i].start
                 ? 0
                 : (at - record.jobs[i].start).us;
    };
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const JobRecord& r = record.jobs[i];
      REQUIRE(r.end != fleet_never);
      moved += r.preemptions;
      if (r.start == list.jobs[i].submit) continue;
      // While it waited for its first start ten others held all hosts: none of them of the second
      // queue, which a job can be only after 900 s.
      std::int64_t old = 0;
      for (std::size_t k = 0; k < list.jobs.size(); ++k)
        if (record.jobs[k].preemptions == 0 && record.jobs[k].start < r.start &&
            record.jobs[k].end > r.start && had(k, r.start) > 900 * second)
          ++old;
      REQUIRE(old == 0);
    }
  }
  CHECK(moved > 100);
}

TEST_CASE("law: queues hold no more than their quotas, and loans are given back", "[fleet]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 20; ++round) {
    ClusterJobs list = jobs_of_queues(seed + round, 300, 3);
    for (ClusterJob& job : list.jobs) {
      job.preemptible = true;
      job.priority = 0;
      job.gpus = 8 * ((job.gpus + 7) / 8);
      if (job.gpus > 24) job.gpus = 24;
    }
    FleetQuestion question = question_of(seed);
    question.policy.fit = JobFit::block;
    question.works[0] = JobWork{};
    question.quotas = {{.gpus = 24}, {.gpus = 32}, {.gpus = 24}};
    const auto held = [&](const FleetRecord& record, FleetTime at) {
      std::map<int, std::int64_t> sum;
      for (std::size_t i = 0; i < list.jobs.size(); ++i)
        if (record.jobs[i].start <= at && at < record.jobs[i].end)
          sum[list.jobs[i].queue] += list.jobs[i].gpus;
      return sum;
    };
    const FleetRecord strict = run_fleet(list, question);
    for (const JobRecord& r : strict.jobs) {
      REQUIRE(r.end != fleet_never);
      auto sum = held(strict, r.start);
      for (int queue = 0; queue < 3; ++queue)
        REQUIRE(sum[queue] <= question.quotas[static_cast<std::size_t>(queue)].gpus);
    }
    // The quotas are the cluster: a queue that keeps to its own never waits for the others' loans.
    FleetQuestion lending = question;
    for (QueueQuota& quota : lending.quotas) quota.borrows = true;
    lending.quotas[0].borrows = false;
    const FleetRecord loans = run_fleet(list, lending);
    std::int64_t earlier = 0;
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(loans.jobs[i].end != fleet_never);
      INFO("job " << i << " of queue " << list.jobs[i].queue);
      if (list.jobs[i].queue == 0) REQUIRE(loans.jobs[i].start.us == strict.jobs[i].start.us);
      earlier += loans.jobs[i].start < strict.jobs[i].start ? 1 : 0;
    }
    CHECK(earlier > 0);
    CHECK(loans.use.work.all() == loans.use.held * 1'000'000);
  }
}

TEST_CASE("nobody is stopped who is not in the way", "[fleet]") {
  ClusterJobs list;
  const auto add = [&](std::int64_t submit, std::int32_t gpus, std::int16_t priority) {
    list.jobs.push_back({.submit = {submit * second},
                         .length = {1000 * second},
                         .limit = {1000 * second},
                         .gpus = gpus,
                         .priority = priority});
  };
  add(0, 24, 0);
  add(1, 8, 0);    // began last, and is not needed
  add(10, 24, 1);  // takes the first one's hosts
  FleetQuestion question = question_of(1);
  question.shape.hosts = 4;
  question.works[0] = JobWork{};
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[0].preemptions == 1);
  CHECK(record.jobs[1].preemptions == 0);
  CHECK(record.jobs[2].start == FleetTime{10 * second});
}

TEST_CASE("a loan that a queue can never own does not use up its quota", "[fleet]") {
  ClusterJobs list;
  list.queues = {"a", "b"};
  const auto add = [&](std::int64_t submit, std::int32_t gpus, std::int32_t queue) {
    list.jobs.push_back({.submit = {submit * second},
                         .length = {1000 * second},
                         .limit = {1000 * second},
                         .gpus = gpus,
                         .queue = queue});
  };
  add(0, 24, 0);  // beyond the quota of 16: a loan for as long as it runs
  add(1, 16, 0);  // within it
  add(2, 24, 1);  // the other queue's own: stops the loan alone
  FleetQuestion question = question_of(1);
  question.shape.hosts = 5;
  question.works[0] = JobWork{};
  question.quotas = {{.gpus = 16, .borrows = true}, {.gpus = 24}};
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[0].preemptions == 1);
  CHECK(record.jobs[1].preemptions == 0);
  CHECK(record.jobs[2].start == FleetTime{2 * second});
}

}  // namespace
}  // namespace orrery
