// SPDX-License-Identifier: Apache-2.0
// Tests that jobs which share tapered links are put where they lose less, and where nobody shares
// any where least-level puts them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/placer.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;
constexpr std::int64_t step_ps = INT64_C(1'000'000'000'000);

// Steps grow by 2% for each leaf group more than are needed; `load`: of links above leaf groups and
// pods, where all hosts below send as those of the job do.
class GroupPrices final : public PlacePrices {
 public:
  GroupPrices(const SlotShape& shape, double load) : shape_(shape), load_(load) {}
  PlacePrice price(std::uint16_t work, const Grants& place) override {
    if (work == 0) return {.step_ps = 1'000'000};
    std::set<std::int32_t> groups;
    std::int32_t hosts = 0;
    const std::int32_t reach = shape_.levels.front().reach;
    for (const HostGrant& grant : place)
      for (std::int32_t h = grant.host; h < grant.host + grant.hosts; ++h, ++hosts)
        groups.insert(h / reach);
    const auto needed = static_cast<std::int64_t>((hosts + reach - 1) / reach);
    const std::int64_t more = static_cast<std::int64_t>(groups.size()) - needed;
    PlacePrice out{.step_ps = step_ps + step_ps / 50 * more};
    const double busy = work == 1 ? 0.3 : 0.15;
    if (load_ > 0) out.trunks = {{.busy = busy, .load = load_}, {.busy = busy, .load = load_}};
    return out;
  }

 private:
  SlotShape shape_;
  double load_;
};

// Four hosts a leaf group, four groups a pod.
SlotShape pods(std::int32_t hosts) {
  SlotShape shape{.hosts = hosts, .gpus_per_host = 8, .last_host_gpus = 8};
  shape.levels = {{"leaf group", 4}, {"pod", 16}};
  return shape;
}

// Trainings of two kinds of up to `most` accelerators, for up to three hours; some are recorded.
ClusterJobs trainings(std::uint64_t seed, std::size_t count, std::uint64_t most) {
  return drawn_jobs(seed, count, 600, {second}, [&](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(600 + random.below(10'000)) * second;
    job.limit = job.length;
    job.gpus = drawn_gpus(random, most);
    job.work = static_cast<std::uint16_t>(random.below(3));
    job.priority = static_cast<std::int16_t>(random.below(3));
  });
}

JobWork training() {
  JobWork work{.step_ps = step_ps, .priced = true, .save_steps = 100};
  work.save_ps = step_ps;
  work.restart.us = 60 * second;
  return work;
}

FleetQuestion question_of(std::uint64_t round) {
  FleetQuestion question;
  question.shape = pods(40);
  question.policy = {round % 3 == 0 ? JobOrder::priority : JobOrder::fifo,
                     round % 2 == 0 ? JobFit::easy : JobFit::any, JobPlace::least_contention};
  question.policy.preempts = round % 3 == 0;
  question.policy.defragments = round % 4 == 1;
  if (round % 8 == 5)
    question.policy = {JobOrder::fifo, JobFit::conservative, JobPlace::least_contention};
  if (round % 8 == 6) {
    question.policy = {JobOrder::priority, JobFit::rounds, JobPlace::least_contention};
    question.policy.preempts = true;
    question.loops.rounds.rule = RoundRule::max_min;
  }
  if (round % 8 == 7)
    question.policy = {JobOrder::priority, JobFit::gang_timeout, JobPlace::least_contention};
  question.works = {JobWork{.save_steps = 60 * second}, training(), training()};
  if (round % 5 == 2) {
    question.breakdowns.kinds = {{"host", Hertz(1 / 40'000.0), 1, 0.7, seconds(20'000), {}, {}}};
    question.breakdowns.spare_hosts = 2;
  }
  question.seed = round;
  return question;
}

struct Told {
  FleetTime at;
  std::uint32_t job = 0;
  FleetEventKind kind = FleetEventKind::submit;
  Grants place;
  bool operator==(const Told&) const = default;
};

std::vector<Told> told_by(const ClusterJobs& list, FleetQuestion question) {
  std::vector<Told> out;
  question.tell = [&](const FleetEvent& event) {
    out.push_back({event.at, event.job, event.kind, event.place ? *event.place : Grants{}});
  };
  run_fleet(list, question);
  return out;
}

TEST_CASE("law: where nobody shares links least-contention is least-level", "[fleet][contention]") {
  const std::uint64_t seed = fresh(71);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 24; ++round) {
    const ClusterJobs list = trainings(seed + round, 150, 150);
    FleetQuestion question = question_of(round);
    GroupPrices prices(question.shape, 0);
    question.prices = &prices;
    const std::vector<Told> apart = told_by(list, question);
    question.policy.place = JobPlace::least_level;
    REQUIRE(apart == told_by(list, question));
    // Recorded jobs meet nobody.
    ClusterJobs recorded = list;
    for (ClusterJob& job : recorded.jobs) job.work = 0;
    GroupPrices full(question.shape, 2);
    question.prices = &full;
    const std::vector<Told> level = told_by(recorded, question);
    question.policy.place = JobPlace::least_contention;
    REQUIRE(level == told_by(recorded, question));
  }
}

TEST_CASE("law: places by least-contention are whole, and no time is lost", "[fleet][contention]") {
  const std::uint64_t seed = fresh(73);
  INFO("seed " << seed);
  std::size_t unlike = 0;
  for (std::uint64_t round = 0; round < 24; ++round) {
    ClusterJobs list = trainings(seed + round, 150, 150);
    FleetQuestion question = question_of(round);
    // Some must stand in one pod, where the policy knows that.
    question.within = {1};
    const bool knows = question.policy.fit == JobFit::easy || question.policy.fit == JobFit::any;
    for (ClusterJob& job : list.jobs)
      if (knows && job.row % 4 == 0 && job.gpus <= 128) job.within = 1;
    GroupPrices prices(question.shape, 2);
    question.prices = &prices;
    question.tell = [&](const FleetEvent& event) {
      if (event.kind != FleetEventKind::start) return;
      const HostGrant& end = event.place->back();
      if (list.jobs[event.job].within > 0)
        REQUIRE(event.place->front().host / 16 == (end.host + end.hosts - 1) / 16);
      std::int32_t whole = 0, rest = 0, last = -1;
      for (const HostGrant& grant : *event.place) {
        REQUIRE(grant.host > last);
        last = grant.host + grant.hosts - 1;
        (grant.gpus == 8 ? whole : rest) += grant.hosts;
      }
      REQUIRE(gpus_of_place(*event.place) == event.gpus);
      REQUIRE(whole == event.gpus / 8);
      REQUIRE(rest == (event.gpus % 8 > 0 ? 1 : 0));
    };
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    for (const JobRecord& job : record.jobs) REQUIRE((job.end != fleet_never || job.rejected));
    question.tell = {};
    const std::vector<Told> apart = told_by(list, question);
    question.policy.place = JobPlace::least_level;
    unlike += apart == told_by(list, question) ? 0 : 1;
  }
  CHECK(unlike > 15);
}

// On links tapered 2:1, over seeds.
TEST_CASE("law: jobs that meet lose less by least-contention in the mean", "[fleet][contention]") {
  const std::uint64_t seed = fresh(79);
  INFO("seed " << seed);
  double apart = 0, level = 0, placed = 0;
  for (std::uint64_t round = 0; round < 64; ++round) {
    ClusterJobs list = trainings(seed + 100 * round, 150, 250);
    for (ClusterJob& job : list.jobs) job.work = static_cast<std::uint16_t>(1 + job.priority % 2);
    FleetQuestion question = question_of(2);
    question.breakdowns = {};
    const auto slowed = [&](JobPlace place, double load) {
      GroupPrices prices(question.shape, load);
      question.prices = &prices;
      question.policy.place = place;
      const FleetUse use = run_fleet(list, question).use;
      return static_cast<double>(use.work.slowed) / static_cast<double>(use.held);
    };
    apart += slowed(JobPlace::least_contention, 2);
    level += slowed(JobPlace::least_level, 2);
    placed += slowed(JobPlace::least_level, 0);
  }
  CAPTURE(apart, level, placed);
  CHECK(placed < level);
  CHECK(apart < level);
}

TEST_CASE("a gang goes round the links on which another sends", "[fleet][contention]") {
  // Two pods of four leaf groups of four hosts. The first gang takes a group and a half of the
  // first pod, so that it sends over two groups' links.
  ClusterJobs list;
  for (int i = 0; i < 3; ++i) {
    ClusterJob job{.length = {1'000 * second}, .gpus = 48, .work = 1};
    job.submit.us = i * second;
    job.limit = job.length;
    list.jobs.push_back(job);
  }
  FleetQuestion question;
  question.shape = pods(32);
  question.policy = {JobOrder::fifo, JobFit::block, JobPlace::least_level};
  question.works = {JobWork{}, training()};
  GroupPrices prices(question.shape, 2);
  question.prices = &prices;
  const auto places = [&](JobPlace place) {
    std::vector<Grants> out;
    question.policy.place = place;
    for (const Told& one : told_by(list, question))
      if (one.kind == FleetEventKind::start) out.push_back(one.place);
    return out;
  };
  // least-level: the rest of the second goes into the half group of the first.
  const std::vector<Grants> level = places(JobPlace::least_level);
  REQUIRE(level.size() == 3);
  CHECK(level[0] == Grants{{0, 6, 8}});
  CHECK(level[1] == Grants{{6, 2, 8}, {8, 4, 8}});
  const std::vector<Grants> apart = places(JobPlace::least_contention);
  CHECK(apart[0] == level[0]);
  CHECK(apart[1] == Grants{{8, 6, 8}});
  CHECK(apart[2] == Grants{{16, 6, 8}});
}

}  // namespace
}  // namespace orrery
