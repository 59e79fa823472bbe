// SPDX-License-Identifier: Apache-2.0
// Tests laws of a controller with two thresholds: clocks fall where a share of the limit is passed,
// those of low priority first, and rise again a little below it.
#include "sim/engine/power/power_thresholds.h"

#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/cap_case.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

using enum ThresholdStep;

constexpr std::int64_t second = 1'000'000;

CapCurve curve(double watts) { return halved_curve(watts, 1.6); }

PowerThresholds thresholds() {
  return {.first = 0.8,
          .second = 0.89,
          .release = 0.05,
          .low = 27,
          .lower = 3,
          .high = 31,
          .high_from = 1};
}

// What is drawn of a limit of 1,000 at the four steps.
ThresholdStep step_of(ThresholdStep now, std::map<ThresholdStep, std::int64_t> drawn) {
  return next_step(thresholds(), now, 1000, [&](ThresholdStep step) { return drawn.at(step); });
}

TEST_CASE("clocks fall above thresholds, and rise once enough is left", "[power]") {
  CHECK(step_of(none, {{none, 800}, {low, 700}, {lower, 600}, {all, 500}}) == none);
  CHECK(step_of(none, {{none, 801}, {low, 770}, {lower, 740}, {all, 700}}) == low);
  // A little less is drawn now: clocks stay down until it is 5% of the limit below.
  CHECK(step_of(low, {{none, 790}, {low, 760}, {lower, 740}, {all, 700}}) == low);
  CHECK(step_of(low, {{none, 780}, {low, 750}, {lower, 730}, {all, 700}}) == none);
  // They would fall again at once.
  CHECK(step_of(low, {{none, 810}, {low, 740}, {lower, 730}, {all, 700}}) == low);
  CHECK(step_of(none, {{none, 960}, {low, 900}, {lower, 880}, {all, 700}}) == lower);
  CHECK(step_of(none, {{none, 990}, {low, 950}, {lower, 910}, {all, 860}}) == all);
  // Those of high priority have their clocks back first.
  CHECK(step_of(all, {{none, 980}, {low, 920}, {lower, 880}, {all, 840}}) == lower);
  CHECK(step_of(all, {{none, 980}, {low, 920}, {lower, 891}, {all, 840}}) == all);
  CHECK(step_of(all, {{none, 700}, {low, 600}, {lower, 500}, {all, 400}}) == none);
}

struct Running {
  PowerUser user;
  std::int64_t gpus = 0;
};

// Jobs beside a budget, and what they draw by the rules alone.
struct Followed {
  std::vector<CapCurve> curves = {curve(700), curve(600)};
  PowerRules rules{.idle = 100'000,
                   .limit = 45'000'000,
                   .gpus = 96,
                   .policy = PowerPolicy::thresholds,
                   .drawn = {750'000, 650'000, 500'000},
                   .curves = {curves[0], curves[1], std::nullopt},
                   .thresholds = thresholds()};
  PowerBudget budget{rules};
  std::map<std::uint32_t, Running> jobs = {};
  std::int64_t held_back = 0;  // by hysteresis alone

  std::int64_t drawn_at(ThresholdStep step) const {
    std::int64_t sum = rules.idle * rules.gpus;
    for (const auto& [number, job] : jobs) {
      std::int64_t level = cap_steps;
      if (job.user.priority >= 1 && step == all) level = 31;
      if (job.user.priority < 1 && step != none) level = step == low ? 27 : 3;
      const std::int64_t each =
          job.user.work < 2 ? curves[job.user.work][static_cast<std::size_t>(level)].milliwatts
                            : 500'000;
      sum += (each - rules.idle) * job.gpus;
    }
    return sum;
  }
  double share(ThresholdStep of) const {
    return static_cast<double>(drawn_at(of)) / static_cast<double>(rules.limit);
  }

  // Begins one, if there is room and power, or ends one.
  void change(RandomStream& random, std::uint32_t number) {
    const Running job{
        {static_cast<std::uint16_t>(random.below(3)), static_cast<std::int32_t>(random.below(3))},
        static_cast<std::int64_t>(1 + random.below(12))};
    std::int64_t held = job.gpus;
    for (const auto& [other, one] : jobs) held += one.gpus;
    const bool grows = random.below(10) < (number / 60 % 2 == 0 ? 7U : 3U);
    if (grows && held <= rules.gpus &&
        budget.has(budget.least() + budget.extra(job.user, job.gpus))) {
      budget.begin(number, job.user, job.gpus);
      jobs[number] = job;
    } else if (!jobs.empty()) {
      auto gone = jobs.begin();
      std::advance(gone, random.below(jobs.size()));
      budget.end(gone->first, gone->second.user, gone->second.gpus);
      jobs.erase(gone);
    }
  }

  void check(ThresholdStep before) {
    const ThresholdStep step = budget.step();
    REQUIRE(budget.drawn() == drawn_at(step));
    REQUIRE(budget.least() == drawn_at(all));
    REQUIRE(budget.drawn() <= rules.limit);
    if (step == none) REQUIRE(share(none) <= 0.8);
    if (step < all) REQUIRE(share(step) <= 0.89);
    // With less it would pass its threshold, did so at this instant, or is not far enough below it.
    if (step != none) {
      const ThresholdStep less{static_cast<std::uint8_t>(static_cast<int>(step) - 1)};
      const double of = step == low ? 0.8 : 0.89;
      REQUIRE((share(less) > of || share(step) > of - 0.0500001));
      if (share(less) <= of) {
        REQUIRE((before >= step || share(before) > of));
        ++held_back;
      }
    }
    // Clocks rose only once enough was left below the threshold of each step.
    for (auto k = static_cast<int>(before); k > static_cast<int>(step); --k) {
      const ThresholdStep left{static_cast<std::uint8_t>(k)};
      REQUIRE(share(left) <= (left == low ? 0.75 : 0.84) + 1e-9);
    }
    for (const auto& [other, one] : jobs) {
      const bool down = budget.slower(other) > 1;
      const bool is_low = one.user.priority < 1;
      REQUIRE(down == (one.user.work < 2 && (is_low ? step != none : step == all)));
    }
  }
};

TEST_CASE("law: steps keep their thresholds, and nobody's clock falls without need", "[power]") {
  const std::uint64_t seed = fresh(83);
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  Followed followed;
  std::map<ThresholdStep, std::int64_t> times;
  for (std::uint32_t number = 0; number < 4000; ++number) {
    followed.change(random, number);
    const ThresholdStep before = followed.budget.step();
    followed.budget.settle();
    followed.check(before);
    ++times[followed.budget.step()];
  }
  for (const ThresholdStep step : {none, low, lower, all}) CHECK(times[step] > 50);
  CHECK(followed.held_back > 20);
}

ClusterJobs jobs_of(std::uint64_t seed) {
  return drawn_jobs(seed, 250, 2500, {second}, [](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(random.below(20'000'000'000));
    job.limit = job.length;
    job.gpus = drawn_gpus(random, 48);
    job.work = static_cast<std::uint16_t>(random.below(2));
    job.priority = static_cast<std::int16_t>(random.below(3));
  });
}

FleetQuestion open_question() {
  FleetQuestion question;
  question.shape = {.hosts = 12, .gpus_per_host = 8, .last_host_gpus = 8};
  question.policy.fit = JobFit::easy;
  question.works = {{.save_steps = 3600 * second, .milliwatts = 750'000},
                    {.save_steps = 3600 * second, .milliwatts = 650'000}};
  question.idle_milliwatts = 100'000;
  return question;
}

TEST_CASE("law: thresholds that nothing passes change no byte", "[fleet]") {
  const std::uint64_t seed = fresh(83);
  INFO("seed " << seed);
  const ClusterJobs list = jobs_of(seed);
  const FleetRecord open = run_fleet(list, open_question());
  FleetQuestion limited = open_question();
  limited.power_policy = PowerPolicy::thresholds;
  limited.cap_curves = {curve(700), curve(600)};
  limited.thresholds = {.low = 27, .lower = 3, .high = 31};  // at 100%
  limited.power_limit_milliwatts = open.power.most_milliwatts;
  limited.feeds = {{"facility", 12, open.power.most_milliwatts, 0}};
  const FleetRecord same = run_fleet(list, limited);
  CHECK(same.events == open.events);
  CHECK(same.power.nanojoules == open.power.nanojoules);
  CHECK(same.power.most_milliwatts == open.power.most_milliwatts);
  CHECK(same.use.work.useful == open.use.work.useful);
  CHECK(same.use.work.capped == 0);
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    REQUIRE(same.jobs[i].start == open.jobs[i].start);
    REQUIRE(same.jobs[i].end == open.jobs[i].end);
    REQUIRE(same.jobs[i].promise == open.jobs[i].promise);
  }
  // With a little less something is.
  limited.power_limit_milliwatts -= 1;
  CHECK(run_fleet(list, limited).use.work.capped > 0);
}

TEST_CASE("law: a run by thresholds keeps its limit, and tells how long clocks were down",
          "[fleet]") {
  const std::uint64_t seed = fresh(83);
  INFO("seed " << seed);
  FleetQuestion question = open_question();
  question.power_policy = PowerPolicy::thresholds;
  question.cap_curves = {curve(700), curve(600)};
  question.thresholds = thresholds();
  question.thresholds.high_from = {};  // the highest of the list: 2
  ThresholdTimes times;
  for (std::uint64_t round = 0; round < 8; ++round) {
    const ClusterJobs list = jobs_of(seed + round);
    question.power_limit_milliwatts = round % 2 == 0 ? 52'000'000 : 0;
    question.feeds = {};
    if (round % 2 == 1) question.feeds = {{"rack", 2, 9'500'000, 0}, {"hall", 6, 27'000'000, 0}};
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.power.over.us == 0);
    CHECK(record.power.most_milliwatts <= 54'000'000);
    if (round % 2 == 0) CHECK(record.power.most_milliwatts <= 52'000'000);
    CHECK(record.use.work.capped > 0);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    times.low += record.power.stepped.low;
    times.lower += record.power.stepped.lower;
    times.all += record.power.stepped.all;
  }
  CHECK(times.low.us > 0);
  CHECK(times.lower.us > 0);
  CHECK(times.all.us > 0);
}

}  // namespace
}  // namespace orrery
