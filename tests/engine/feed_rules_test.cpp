// SPDX-License-Identifier: Apache-2.0
// Tests that every rule that knows feeds of power keeps them at each start, move and loss.
#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/cap_case.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;
constexpr std::int64_t idle = 100'000;

// Below its draw by a half.
CapCurve curve(double watts) { return halved_curve(watts, 2); }

// Racks of two hosts, a row of four, halls of eight (the second one has four).
FeedTree tree() {
  return {{"rack", 2, 9'000'000, 0}, {"row", 4, 17'000'000, 0.6}, {"hall", 8, 32'000'000, 0.5}};
}

// Work 0 is recorded; works 1 to 3: a step on 8, 16 and 32 accelerators, 1 and 3 draw more.
FleetQuestion feeds_question(PowerPolicy policy) {
  FleetQuestion question;
  question.shape = {.hosts = 12, .gpus_per_host = 8, .last_host_gpus = 8};
  question.shape.levels = {{"leaf group", 4}};
  question.works[0].save_steps = 60 * second;
  question.works[0].milliwatts = 750'000;
  std::vector<WorkSize> sizes;
  for (const std::int32_t gpus : {8, 16, 32}) {
    JobWork work;
    work.step_ps = INT64_C(96'000'000'000'000) / gpus;
    work.save_steps = 50;
    work.milliwatts = gpus == 16 ? 550'000 : 650'000;
    sizes.push_back({gpus, static_cast<std::uint16_t>(question.works.size())});
    question.works.push_back(work);
  }
  question.sizes = {sizes};
  question.idle_milliwatts = idle;
  question.feeds = tree();
  question.power_policy = policy;
  question.thresholds = {.first = 0.8,
                         .second = 0.89,
                         .release = 0.05,
                         .low = 27,
                         .lower = 3,
                         .high = 31,
                         .high_from = 1};
  if (policy != PowerPolicy::admit)
    question.cap_curves = {curve(700), curve(600), curve(500), curve(600)};
  return question;
}

enum class Rule : std::uint8_t { easy, moves, conservative, goodput, optimus, max_min, fair };

void use_rule(Rule rule, FleetQuestion& question) {
  question.policy.place = JobPlace::least_level;
  question.policy.fit = JobFit::easy;
  question.policy.defragments = rule == Rule::moves;
  if (rule == Rule::moves) question.policy.place = JobPlace::spread;
  if (rule == Rule::conservative) question.policy.fit = JobFit::conservative;
  if (rule < Rule::goodput) {
    question.sizes = {};
    return;
  }
  question.policy.fit = JobFit::rounds;
  question.policy.order = JobOrder::priority;
  question.policy.preempts = true;
  question.loops.rounds.every = {120 * second};
  question.loops.rounds.rule = rule == Rule::goodput   ? RoundRule::goodput
                               : rule == Rule::optimus ? RoundRule::optimus
                               : rule == Rule::max_min ? RoundRule::max_min
                                                       : RoundRule::fair;
}

// Some may have sizes, where a rule sizes; the others are recorded.
ClusterJobs jobs_of(std::uint64_t seed, bool sizes) {
  return drawn_jobs(seed, 160, 500, {second}, [&](RandomStream& random, ClusterJob& job) {
    job.priority = static_cast<std::int16_t>(random.below(2));
    job.preemptible = random.below(5) != 0;
    job.length.us = static_cast<std::int64_t>(1 + random.below(3000)) * second;
    job.gpus = drawn_gpus(random, 40);
    if (sizes && random.below(3) == 0) {
      job.gpus = 16;
      job.work = 2;
      job.sizes = 1;
    }
    job.limit = job.length;
  });
}

Incident lost(RandomStream& random, const std::vector<PowerFeed>& feeds) {
  const std::size_t feed = 6 + random.below(5);  // a row or a hall
  return {.name = feeds[feed].name,
          .at = {static_cast<std::int64_t>(random.below(40'000)) * second},
          .length = {static_cast<std::int64_t>(1 + random.below(6'000)) * second},
          .feed = static_cast<std::int32_t>(feed),
          .limit_left = feeds[feed].limit * (feed < 9 ? 6 : 5) / 10};
}

// Follows what a run tells: what its jobs draw below each feed, at their least caps.
class FeedWatch {
 public:
  FeedWatch(const ClusterJobs& list, FleetQuestion& question)
      : list_(list), question_(question), feeds_(feeds_of(question.feeds, 12)) {
    question.tell = [this](const FleetEvent& event) {
      using enum FleetEventKind;
      if (event.kind == start) held_[event.job] = *event.place;
      if (event.kind == end || event.kind == stop || event.kind == cut) held_.erase(event.job);
    };
    question.look = [this](FleetTime now, const Slots&) { look(now); };
  }
  std::int64_t full() const { return full_; }  // looks at which a feed carried all but a twentieth

 private:
  std::int64_t least(const ClusterJob& job, std::int32_t gpus) const {
    std::uint16_t work = job.work;
    for (const WorkSize& size : job.sizes > 0 ? question_.sizes.front() : std::vector<WorkSize>{})
      if (size.gpus == gpus) work = size.work;
    if (question_.power_policy == PowerPolicy::admit) return question_.works[work].milliwatts;
    std::size_t level = 0;
    if (question_.power_policy == PowerPolicy::thresholds) level = job.priority >= 1 ? 31 : 3;
    return (*question_.cap_curves[work])[level].milliwatts;
  }

  void look(FleetTime now) {
    std::vector<std::int64_t> on(12, 8 * idle);
    for (const auto& [job, place] : held_)
      for (const HostGrant& grant : place)
        for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
          on[static_cast<std::size_t>(host)] +=
              grant.gpus * (least(list_.jobs[job], gpus_of_place(place)) - idle);
    for (std::size_t i = 0; i < feeds_.size(); ++i) {
      std::int64_t limit = feeds_[i].limit, drawn = 0;
      for (const Incident& one : question_.breakdowns.incidents)
        if (one.feed == static_cast<std::int32_t>(i) && one.at <= now && now < one.at + one.length)
          limit = one.limit_left;
      for (std::int32_t host = feeds_[i].from; host < feeds_[i].to; ++host)
        drawn += on[static_cast<std::size_t>(host)];
      over_ = over_ || drawn > limit;
      full_ += drawn > limit * 19 / 20 ? 1 : 0;
    }
  }

  const ClusterJobs& list_;
  const FleetQuestion& question_;
  std::vector<PowerFeed> feeds_;
  std::map<std::uint32_t, Grants> held_;
  std::int64_t full_ = 0;

 public:
  bool over_ = false;
};

TEST_CASE("law: every rule that knows feeds keeps them, and all jobs end", "[fleet]") {
  const std::uint64_t seed = fresh(67);
  INFO("seed " << seed);
  std::map<Rule, std::int64_t> full, moved, stopped, suspended;
  for (std::uint64_t round = 0; round < 56; ++round) {
    const Rule rule{static_cast<std::uint8_t>(round % 7)};
    constexpr PowerPolicy policies[] = {PowerPolicy::admit, PowerPolicy::proportional,
                                        PowerPolicy::priority, PowerPolicy::thresholds};
    INFO("round " << round);
    RandomStream random(seed + round, 4);
    FleetQuestion question = feeds_question(policies[round / 14]);
    use_rule(rule, question);
    // A limit that is lost may be above what those draw that may not be stopped.
    const bool loses = round % 14 >= 7;
    ClusterJobs list = jobs_of(seed + round, !question.sizes.empty());
    if (loses) {
      for (ClusterJob& job : list.jobs) job.preemptible = true;
      question.breakdowns.kinds = {{"host", Hertz(1 / 9000.0), 1, 0.7, seconds(9'000), {}, {}}};
      for (int i = 0; i < 6; ++i)
        question.breakdowns.incidents.push_back(lost(random, feeds_of(question.feeds, 12)));
    }
    FeedWatch watch(list, question);
    const FleetRecord record = run_fleet(list, question);
    CHECK_FALSE(watch.over_);
    CHECK(record.power.over.us == 0);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE((record.jobs[i].rejected || record.jobs[i].end != fleet_never));
      moved[rule] += record.jobs[i].moves;
    }
    full[rule] += watch.full();
    suspended[rule] += record.power.suspended;
    for (const IncidentCount& count : record.incidents) stopped[rule] += count.stopped;
    CHECK((record.use.work.capped > 0) == (question.power_policy != PowerPolicy::admit));
  }
  for (int i = 0; i < 7; ++i) {
    const Rule rule{static_cast<std::uint8_t>(i)};
    INFO("rule " << i);
    CHECK(full[rule] > 50);
    CHECK(stopped[rule] > 0);
    CHECK(suspended[rule] == stopped[rule]);
  }
  CHECK(moved[Rule::moves] > 20);
  CHECK(moved[Rule::goodput] > 20);
}

TEST_CASE("a gang has a smaller size where power carries no more, and grows later", "[fleet]") {
  FleetQuestion question = feeds_question(PowerPolicy::admit);
  use_rule(Rule::goodput, question);
  // Beside 24 accelerators of the first job, which is not stopped, eight more are carried.
  question.feeds = {{"facility", 12, 96 * idle + 24 * 650'000 + 15 * 450'000, 0}};
  ClusterJobs list;
  list.jobs.push_back({.length = {3000 * second}, .gpus = 24, .preemptible = false});
  list.jobs.push_back({.submit = {100 * second}, .length = {6000 * second}, .gpus = 16, .work = 2});
  list.jobs[1].sizes = 1;
  for (ClusterJob& job : list.jobs) job.limit = job.length;
  std::map<FleetTime, std::int32_t> sizes;  // of the second job
  question.tell = [&](const FleetEvent& event) {
    if (event.kind == FleetEventKind::start && event.job == 1)
      sizes[event.at] = static_cast<std::int32_t>(event.gpus);
  };
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[0].end == FleetTime{3000 * second});
  REQUIRE(sizes.size() == 2);
  CHECK(sizes.at({120 * second}) == 8);
  CHECK(sizes.rbegin()->first == FleetTime{3000 * second});
  CHECK(sizes.rbegin()->second == 32);
}

// A rule that shares time does so of what power carries: sizes for more would leave out the same
// small gangs in each round.
TEST_CASE("who shares time shares what power carries", "[fleet]") {
  FleetQuestion question = feeds_question(PowerPolicy::admit);
  use_rule(Rule::max_min, question);
  question.feeds = {{"facility", 12, 96 * idle + 40 * 650'000, 0}};
  ClusterJobs list;
  for (int i = 0; i < 9; ++i) {
    ClusterJob job{.length = {(i < 2 ? 30'000 : 3'000) * second}, .gpus = i < 2 ? 32 : 8};
    job.limit = job.length;
    list.jobs.push_back(job);
  }
  const FleetRecord record = run_fleet(list, question);
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    REQUIRE(record.jobs[i].end != fleet_never);
    CHECK(record.jobs[i].start < FleetTime{3'000 * second});
  }
}

// Where nobody is capped a start that is promised is carried.
TEST_CASE("law: conservative keeps its promises under feeds and limits", "[fleet]") {
  const std::uint64_t seed = fresh(67);
  INFO("seed " << seed);
  std::int64_t promised = 0, earlier = 0, later_than_hosts = 0;
  for (std::uint64_t round = 0; round < 12; ++round) {
    const ClusterJobs list = jobs_of(seed + round, false);
    FleetQuestion question = feeds_question(PowerPolicy::admit);
    use_rule(Rule::conservative, question);
    if (round % 3 == 1) question.power_limit_milliwatts = 40'000'000;
    if (round % 3 == 2) {
      question.power_limit_milliwatts = 40'000'000;
      question.feeds = {};
    }
    const FleetRecord record = run_fleet(list, question);
    if (question.power_limit_milliwatts > 0)
      CHECK(record.power.most_milliwatts <= question.power_limit_milliwatts);
    FleetQuestion open = question;
    open.power_limit_milliwatts = 0;
    open.feeds = {};
    const FleetRecord hosts = run_fleet(list, open);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const JobRecord& one = record.jobs[i];
      if (one.rejected) continue;
      REQUIRE(one.end == one.start + list.jobs[i].length);
      later_than_hosts += one.start > hosts.jobs[i].start ? 1 : 0;
      if (one.promise == fleet_never) continue;
      ++promised;
      REQUIRE(one.start <= one.promise);
      earlier += one.start < one.promise ? 1 : 0;
    }
  }
  CHECK(promised > 300);
  CHECK(later_than_hosts > 300);
}

// One feed above all that carries everything: the plan is made anew more often, and is the same.
TEST_CASE("law: feeds that carry all change no start, under every rule", "[fleet]") {
  const std::uint64_t seed = fresh(67);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 14; ++round) {
    const Rule rule{static_cast<std::uint8_t>(round % 7)};
    INFO("rule " << round % 7);
    FleetQuestion feeds = feeds_question(round < 7 ? PowerPolicy::admit : PowerPolicy::thresholds);
    use_rule(rule, feeds);
    feeds.feeds = {{"rack", 2, 16'000'000, 0}, {"facility", 12, 0, 0}};
    FleetQuestion open = feeds;
    feeds.thresholds.first = feeds.thresholds.second = 1;
    open.feeds = {};
    open.power_policy = PowerPolicy::admit;
    const ClusterJobs list = jobs_of(seed + round, !feeds.sizes.empty());
    const FleetRecord one = run_fleet(list, feeds), two = run_fleet(list, open);
    CHECK(one.power.nanojoules == two.power.nanojoules);
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      REQUIRE(one.jobs[i].start == two.jobs[i].start);
      REQUIRE(one.jobs[i].end == two.jobs[i].end);
      REQUIRE(one.jobs[i].moves == two.jobs[i].moves);
    }
  }
}

}  // namespace
}  // namespace orrery
