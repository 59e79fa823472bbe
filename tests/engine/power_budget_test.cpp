// SPDX-License-Identifier: Apache-2.0
// Tests laws of caps: nobody draws more than there is, caps are as high as they can be, and what a
// cap takes is counted as that.
#include "sim/engine/power/power_budget.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/job_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

// A board of so many watts whose clock goes with its power, down to half of that.
CapCurve board(double watts, double exponent) {
  std::vector<CapPoint> points;
  for (const double share : {0.5, 0.6, 0.75, 1.0})
    points.push_back(
        {.watts = watts * share, .drawn = watts * share, .step = std::pow(share, -exponent)});
  return cap_curve(points, 50);
}

TEST_CASE("a curve of caps goes through its points, on straight lines", "[power]") {
  const CapCurve curve = cap_curve({{.watts = 300, .drawn = 290, .step = 5},
                                    {.watts = 400, .drawn = 380, .step = 4.2},
                                    {.watts = 500, .drawn = 410, .step = 4}},
                                   100);
  CHECK(curve[cap_steps].milliwatts == 510'000);
  CHECK(curve[cap_steps].slower == 1);
  CHECK(curve[0].milliwatts == 390'000);
  CHECK(curve[0].slower == Approx(1.25));
  CHECK(curve[cap_steps / 2].milliwatts == 480'000);
  CHECK(curve[cap_steps / 2].slower == Approx(1.05));
  // 60% of the way up to the second point.
  CHECK(curve[3 * cap_steps / 10].milliwatts == 444'000);
  CHECK(curve[3 * cap_steps / 10].slower == Approx((5 - 0.6 * 0.8) / 4));
  for (std::size_t i = 1; i < curve.size(); ++i) {
    CHECK(curve[i].milliwatts >= curve[i - 1].milliwatts);
    CHECK(curve[i].slower <= curve[i - 1].slower);
  }
}

struct Running {
  std::uint16_t work = 0;
  std::int64_t gpus = 1;
  std::int32_t priority = 0;
};

std::int64_t drawn_at(const PowerRules& rules, const Running& job, std::size_t level) {
  return rules.curves[job.work] ? (*rules.curves[job.work])[level].milliwatts
                                : rules.drawn[job.work];
}

// The level of a job, by what it takes; that of least power where several take as long.
std::size_t level_of(const PowerRules& rules, const PowerBudget& budget, std::uint32_t number,
                     const Running& job) {
  if (!rules.curves[job.work]) return cap_steps;
  for (std::size_t level = 0; level <= cap_steps; ++level)
    if ((*rules.curves[job.work])[level].slower == budget.slower(number)) return level;
  FAIL("no such level");
  return 0;
}

TEST_CASE("law: caps are as high as a limit lets them, and those of low priority lower",
          "[power]") {
  const std::uint64_t seed = fresh(31);
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  for (const PowerPolicy policy : {PowerPolicy::proportional, PowerPolicy::priority}) {
    PowerRules rules{.idle = 120'000,
                     .limit = 45'000'000,
                     .gpus = 96,
                     .policy = policy,
                     .drawn = {750'000, 650'000, 400'000},
                     .curves = {board(700, 0.3), board(600, 0.9), std::nullopt}};
    PowerBudget budget(rules);
    std::map<std::uint32_t, Running> jobs;
    std::int64_t capped = 0, free = 0;
    for (std::uint32_t number = 0; number < 3000; ++number) {
      const Running job{static_cast<std::uint16_t>(random.below(3)),
                        static_cast<std::int64_t>(1 + random.below(16)),
                        static_cast<std::int32_t>(random.below(3))};
      std::int64_t held = job.gpus;
      for (const auto& [other, one] : jobs) held += one.gpus;
      if (held <= rules.gpus &&
          budget.has(budget.least() + budget.extra({job.work, job.priority}, job.gpus))) {
        budget.begin(number, {job.work, job.priority}, job.gpus);
        jobs[number] = job;
      } else if (!jobs.empty()) {
        auto gone = jobs.begin();
        std::advance(gone, random.below(jobs.size()));
        budget.end(gone->first, {gone->second.work, gone->second.priority}, gone->second.gpus);
        jobs.erase(gone);
      }
      budget.settle();
      std::int64_t sum = rules.idle * rules.gpus, next = sum, least = sum;
      std::int32_t worst = INT32_MAX;  // the lowest priority that is not at its least cap
      for (const auto& [other, one] : jobs) {
        const std::size_t level = level_of(rules, budget, other, one);
        sum += (drawn_at(rules, one, level) - rules.idle) * one.gpus;
        least += (drawn_at(rules, one, 0) - rules.idle) * one.gpus;
        if (rules.curves[one.work] && level > 0) worst = std::min(worst, one.priority);
      }
      bool some = false;
      for (const auto& [other, one] : jobs) {
        const std::size_t level = level_of(rules, budget, other, one);
        some = some || level < cap_steps;
        // Whoever is capped in part is so with all alike; of those above nobody is capped.
        if (policy == PowerPolicy::priority && level < cap_steps) CHECK(one.priority <= worst);
        if (policy == PowerPolicy::proportional)
          next += (drawn_at(rules, one, std::min<std::size_t>(cap_steps, level + 1)) - rules.idle) *
                  one.gpus;
      }
      REQUIRE(budget.drawn() == sum);
      REQUIRE(budget.least() == least);
      REQUIRE(sum <= rules.limit);
      REQUIRE_FALSE(budget.is_over());
      if (policy == PowerPolicy::proportional && some) CHECK(next > rules.limit);
      (some ? capped : free) += 1;
    }
    CHECK(capped > 100);
    CHECK(free > 100);
  }
}

ClusterJobs mixed_jobs(std::uint64_t seed, std::size_t count) {
  return drawn_jobs(seed, count, 2000, {second}, [&](RandomStream& random, ClusterJob& job) {
    job.length.us = static_cast<std::int64_t>(1 + random.below(20'000'000'000));
    job.limit = job.length + FleetTime{static_cast<std::int64_t>(random.below(2)) * second};
    job.gpus = drawn_gpus(random, 48);
    job.work = static_cast<std::uint16_t>(random.below(3));
    job.priority = static_cast<std::int16_t>(random.below(3));
    job.fate = random.below(5) == 0 ? JobFate::failed : JobFate::completed;
  });
}

class FlatPrices final : public PlacePrices {
 public:
  PlacePrice price(std::uint16_t, const Grants& place) override {
    return {.step_ps = 777'777'777'777 + 12'345'678'901 * std::ssize(place),
            .trunks = {{}, {.busy = 0.3, .load = 1.5}}};
  }
};

FleetQuestion capped_question(PlacePrices& prices) {
  FleetQuestion question;
  question.shape = {.hosts = 12, .gpus_per_host = 8, .last_host_gpus = 8};
  question.shape.levels = {{"domain", 2}, {"leaf group", 4}};
  question.works = {JobWork{}, JobWork{.save_steps = 1'000'000'000, .save_ps = 20'000'000'000'000},
                    JobWork{.step_ps = 777'777'777'777, .priced = true, .save_steps = 1000}};
  question.works[0].milliwatts = 550'000;
  question.works[1].milliwatts = 750'000;
  question.works[2].milliwatts = 650'000;
  question.cap_curves = {board(500, 0.2), board(700, 0.3), board(600, 0.9)};
  question.prices = &prices;
  question.idle_milliwatts = 120'000;
  return question;
}

BreakdownPlan some_breakdowns() {
  BreakdownPlan plan;
  plan.kinds = {{"process", Hertz(1 / 8000.0), 0, 0, {}, {}, {}},
                {"host", Hertz(1 / 5000.0), 1, 0.7, seconds(20'000), {}, {}}};
  return plan;
}

void check_alike(const FleetRecord& a, const FleetRecord& b) {
  REQUIRE(a.jobs.size() == b.jobs.size());
  for (std::size_t i = 0; i < a.jobs.size(); ++i) {
    REQUIRE(a.jobs[i].start == b.jobs[i].start);
    REQUIRE(a.jobs[i].end == b.jobs[i].end);
    REQUIRE(a.jobs[i].promise == b.jobs[i].promise);
    REQUIRE(a.jobs[i].stops == b.jobs[i].stops);
  }
  CHECK(a.use.work.useful == b.use.work.useful);
  CHECK(a.use.work.in_vain == b.use.work.in_vain);
  CHECK(a.use.work.slowed == b.use.work.slowed);
  CHECK(a.use.work.starting == b.use.work.starting);
  CHECK(a.use.work.lost == b.use.work.lost);
  CHECK(b.use.work.capped == 0);
  CHECK(a.power.nanojoules == b.power.nanojoules);
  CHECK(a.power.most_milliwatts == b.power.most_milliwatts);
  CHECK(a.events == b.events);
}

TEST_CASE("law: a limit that never binds changes nothing under any rule of power", "[power]") {
  const std::uint64_t seed = fresh(31);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 12; ++round) {
    FlatPrices prices;
    FleetQuestion question = capped_question(prices);
    ClusterJobs list = mixed_jobs(seed + round, 200);
    if (round % 3 == 0)
      for (ClusterJob& job : list.jobs) job.work = 0;  // recorded ones alone
    if (round % 3 == 0) question.works.resize(1);
    if (round % 3 == 1) question.breakdowns = some_breakdowns();
    question.seed = seed + round;
    question.policy.fit = round % 2 == 0 ? JobFit::block : JobFit::easy;
    question.policy.preempts = round % 4 == 1;
    if (question.policy.preempts) question.policy.order = JobOrder::priority;
    const FleetRecord open = run_fleet(list, question);
    // Promises to heads count on what would be drawn if nothing else changed, which may be more
    // than ever is.
    question.power_limit_milliwatts =
        question.policy.fit == JobFit::block ? open.power.most_milliwatts : 96 * 750'000;
    for (const PowerPolicy policy :
         {PowerPolicy::admit, PowerPolicy::proportional, PowerPolicy::priority}) {
      question.power_policy = policy;
      INFO("round " << round << ", " << power_policy_text[policy]);
      check_alike(open, run_fleet(list, question));
    }
  }
}

TEST_CASE("law: capped jobs stay within the limit, and what caps take is counted", "[power]") {
  const std::uint64_t seed = fresh(31);
  INFO("seed " << seed);
  GpuPicos capped = 0;
  for (std::uint64_t round = 0; round < 24; ++round) {
    FlatPrices prices;
    FleetQuestion question = capped_question(prices);
    const ClusterJobs list = mixed_jobs(seed + round, 200);
    if (round % 3 == 1) question.breakdowns = some_breakdowns();
    question.seed = seed + round;
    question.policy.fit = round % 2 == 0 ? JobFit::block : JobFit::easy;
    question.policy.preempts = round % 4 == 1;
    if (question.policy.preempts) question.policy.order = JobOrder::priority;
    question.power_policy = round % 5 < 3 ? PowerPolicy::proportional : PowerPolicy::priority;
    question.power_limit_milliwatts = 96 * (round % 2 == 0 ? 450'000 : 380'000);
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.power.most_milliwatts <= question.power_limit_milliwatts);
    CHECK(record.power.over.us == 0);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    CHECK(record.use.work.capped >= 0);
    CHECK(record.use.work.slowed >= 0);
    CHECK(record.use.work.lost >= 0);
    capped += record.use.work.capped;
    GpuPicos useful = 0;
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const ClusterJob& job = list.jobs[i];
      if (record.jobs[i].rejected) continue;
      REQUIRE(record.jobs[i].end != fleet_never);
      const JobWork& work = question.works[job.work];
      useful += static_cast<GpuPicos>(steps_of(work, job.length)) * work.step_ps * job.gpus;
    }
    CHECK(record.use.work.useful + record.use.work.in_vain == useful);
  }
  CHECK(capped > 0);
}

// Jobs that run as long as they are asked to, in the mean over many lists: Graham's anomalies may
// turn a single one around.
TEST_CASE("law: a tighter limit gets no more done in the mean, and caps more than admission",
          "[power]") {
  const std::uint64_t seed = fresh(31);
  INFO("seed " << seed);
  constexpr int rounds = 30;
  const auto done = [&](PowerPolicy policy, std::int64_t each) {
    double sum = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      FlatPrices prices;
      FleetQuestion question = capped_question(prices);
      ClusterJobs list = mixed_jobs(seed + round, 200);
      for (ClusterJob& job : list.jobs) {
        job.submit.us /= 20;  // many wait at all times
        job.gpus = std::min(job.gpus, 16);
      }
      question.horizon = FleetTime{36'000 * second};
      question.policy.fit = JobFit::easy;
      question.power_policy = policy;
      question.power_limit_milliwatts = 96 * each;
      const FleetRecord record = run_fleet(list, question);
      sum += static_cast<double>(record.use.work.useful + record.use.work.in_vain) * 1e-18;
    }
    return sum / rounds;
  };
  for (const PowerPolicy policy :
       {PowerPolicy::admit, PowerPolicy::proportional, PowerPolicy::priority}) {
    double before = HUGE_VAL;
    for (const std::int64_t each : {700'000, 600'000, 550'000, 500'000, 450'000, 400'000}) {
      const double now = done(policy, each);
      CHECK(now < before * 1.002);
      before = now;
    }
  }
  CHECK(done(PowerPolicy::proportional, 500'000) > 1.03 * done(PowerPolicy::admit, 500'000));
}

// Two jobs on one link: the cap makes them compute for longer, and they send for a smaller share.
TEST_CASE("caps and links: jobs meet as they are capped", "[power]") {
  FlatPrices prices;
  FleetQuestion question = capped_question(prices);
  ClusterJobs list;
  constexpr std::int64_t steps = 10'000;
  for (std::uint32_t i = 0; i < 2; ++i) {
    ClusterJob job{.row = i + 1, .work = 2};
    job.length.us = steps * 777'777'777'777 / 1'000'000 + 1;
    job.limit = job.length;
    job.gpus = 48;
    list.jobs.push_back(job);
  }
  question.policy.place = JobPlace::pack;
  question.power_policy = PowerPolicy::proportional;
  question.power_limit_milliwatts = 96 * 500'000;
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.power.most_milliwatts <= 96 * 500'000);
  const CapCurve& curve = *question.cap_curves[2];
  std::size_t level = cap_steps;
  while (curve[level].milliwatts > 500'000) --level;
  CHECK(curve[level].slower > 1.1);
  const double placed = (777'777'777'777 + 12'345'678'901) * 1e-12;
  const double step = placed * curve[level].slower;
  // Each has two of four hosts of the group that both are on.
  const LinkUser user{.step = step, .busy = 0.3 / curve[level].slower, .load = 0.75};
  const std::vector<LinkUser> users = {user, user};
  const double loss = sharing_losses(users, LinkMeeting::random).front();
  CHECK(loss > 0.02);
  CHECK(to_seconds(record.jobs[0].end).si() == Approx(steps * step * (1 + loss)).epsilon(1e-4));
  CHECK(static_cast<double>(record.use.work.capped) * 1e-12 / 96 ==
        Approx(steps * (step - placed)).epsilon(1e-3));
}

}  // namespace
}  // namespace orrery
