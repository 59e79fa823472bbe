// SPDX-License-Identifier: Apache-2.0
// Knows what a plan must keep: order, limits, the best among what is feasible, more never worse.
#include "sim/plan/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "hw_models/catalog.h"
#include "sim/base/errors/interrupt.h"
#include "sim/plan/point.h"
#include "tests/plan/small_plan.h"

using namespace orrery;

namespace {

PlanResult answer(const Plan& question, int threads = 2) {
  return plan(question, {.threads = threads, .full_batches = 0});
}

PlanPoint found(const PlanGoal& goal) {
  PlanChoice choice = small_choice("dgx-h100", 0);
  const double tokens = choice.goal.tokens;
  choice.goal = goal;
  choice.goal.tokens = tokens;
  return answer({.choices = {choice}}).points.front();
}

void check_limits(const PlanPoint& p) {
  CHECK(p.step.fits);
  CHECK(p.feasible);
  for (const PlanVerdict& v : p.verdicts) CHECK(v.needed <= v.allowed);
}

}  // namespace

TEST_CASE("points keep the order of their choices and the best is the least that is feasible") {
  Plan question;
  for (const char* cluster : {"dgx-h100", "dgx-h200", "dgx-b200"})
    for (const std::int64_t gpus : {16, 64, 32}) {
      question.choices.push_back(small_choice(cluster, gpus));
      question.choices.back().goal.allowed = Seconds(60 * day);
      question.choices.back().goal.objective = PlanObjective::cost;
    }
  const PlanResult result = answer(question);
  REQUIRE(result.points.size() == question.choices.size());
  REQUIRE(result.best);
  const PlanPoint& best = result.points[*result.best];
  check_limits(best);
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const PlanPoint& p = result.points[i];
    CHECK(p.choice == i);
    CHECK(p.gpus == question.choices[i].question.cluster.gpus);
    REQUIRE(p.step.fits);
    CHECK(p.feasible == (p.finish <= Seconds(60 * day)));
    if (p.feasible) CHECK(best.cost <= p.cost);
    CHECK(p.effective > 0.5);
    CHECK(p.effective < 1);
    // Wall-clock time, speed and tokens are one.
    CHECK(p.tokens_per_second * p.effective * p.duration.si() == Approx(1e12).epsilon(1e-6));
    CHECK(p.bought >= p.gpus + p.spares);
  }
}

TEST_CASE("a plan is the same on any number of threads") {
  Plan question;
  for (const char* cluster : {"dgx-h100", "dgx-b200"})
    for (const std::int64_t gpus : {8, 32}) question.choices.push_back(small_choice(cluster, gpus));
  question.choices.push_back(small_choice("dgx-h100", 0));
  question.choices.back().goal.power = Watts(60e3);
  const PlanResult one = answer(question, 1), three = answer(question, 3);
  REQUIRE(one.points.size() == three.points.size());
  CHECK(one.best == three.best);
  for (std::size_t i = 0; i < one.points.size(); ++i) {
    CHECK(one.points[i].gpus == three.points[i].gpus);
    CHECK(one.points[i].finish == three.points[i].finish);
    CHECK(one.points[i].cost == three.points[i].cost);
    CHECK(to_text(one.points[i].step.best.layout) == to_text(three.points[i].step.best.layout));
  }
}

TEST_CASE("nothing on the front is beaten in time and money at once") {
  Plan question;
  for (const char* cluster : {"dgx-h100", "dgx-h200", "dgx-b200"})
    for (const std::int64_t gpus : {16, 32, 64})
      question.choices.push_back(small_choice(cluster, gpus));
  const PlanResult result = answer(question);
  REQUIRE(!result.front.empty());
  for (std::size_t i = 1; i < result.front.size(); ++i) {
    CHECK(result.front[i - 1].finish < result.front[i].finish);
    CHECK(result.front[i - 1].cost > result.front[i].cost);
  }
  for (const PlanPoint& p : result.points)
    CHECK(std::any_of(result.front.begin(), result.front.end(), [&](const PlanPoint& f) {
      return f.finish <= p.finish && f.cost <= p.cost;
    }));
}

TEST_CASE("more power, money or time never makes the answer worse") {
  double before = INFINITY;
  for (const double kilowatts : {40.0, 90.0, 200.0, 400.0}) {
    const PlanPoint p = found({.power = Watts(kilowatts * 1e3)});
    check_limits(p);
    CHECK(p.finish.si() <= before);
    before = p.finish.si();
  }
  before = INFINITY;
  for (const double dollars : {1e6, 3e6, 10e6}) {
    const PlanPoint p = found({.capital = Dollars(dollars * 3)});
    check_limits(p);
    CHECK(p.finish.si() <= before);
    before = p.finish.si();
  }
  before = INFINITY;
  for (const double days : {10.0, 20.0, 60.0, 200.0}) {
    const PlanPoint p = found({.allowed = Seconds(days * day), .objective = PlanObjective::gpus});
    check_limits(p);
    CHECK(static_cast<double>(p.gpus) <= before);
    before = static_cast<double>(p.gpus);
  }
}

TEST_CASE("the smallest machine by a deadline is ruled by it") {
  PlanChoice choice = small_choice("dgx-h100", 0);
  choice.goal.allowed = Seconds(30 * day);
  choice.goal.objective = PlanObjective::gpus;
  const PlanResult result = answer({.choices = {choice}});
  const PlanPoint& best = result.points.front();
  check_limits(best);
  CHECK(best.binding == "deadline");
  REQUIRE(result.tried.front().size() > 1);
  for (const PlanPoint& p : result.tried.front()) {
    if (p.gpus < best.gpus) CHECK(!p.feasible);
  }
}

TEST_CASE("what cannot be done says by how much") {
  PlanChoice choice = small_choice("dgx-h100", 0);
  choice.goal.allowed = Seconds(20 * day);
  choice.goal.capital = Dollars(0.5e6);
  const PlanResult result = answer({.choices = {choice}});
  CHECK(!result.best);
  const PlanPoint& p = result.points.front();
  CHECK(!p.feasible);
  if (p.step.fits)
    CHECK(plan_excess(p) > 1);
  else
    CHECK(!p.step.why_not.empty());
}

TEST_CASE("money alone changes no step") {
  Plan question;
  for (const char* site : {"norway", "us-industrial"}) {
    question.choices.push_back(small_choice("dgx-h100", 32));
    PlanTerms& terms = question.choices.back().terms;
    terms.facts = load_bill_facts(question.choices.back().question.cluster, {.site = site});
  }
  const PlanResult result = answer(question);
  CHECK(result.points[0].finish == result.points[1].finish);
  CHECK(result.points[0].carbon < result.points[1].carbon);
}

TEST_CASE("what is rented has no limit on capital") {
  PlanChoice choice = small_choice("dgx-h100", 32);
  choice.goal.capital = Dollars(1);
  const auto judged = [&] {
    const PlanPoint p = answer({.choices = {choice}}).points.front();
    return std::count_if(p.verdicts.begin(), p.verdicts.end(),
                         [](const PlanVerdict& v) { return v.name == "capital"; });
  };
  CHECK(judged() == 1);
  choice.terms.ownership = Ownership::rent;
  CHECK(judged() == 0);
}

TEST_CASE("a predicted duration is an estimate of ours") {
  const PlanChoice choice = small_choice("dgx-h100", 32);
  const PlanPoint p = answer({.choices = {choice}}).points.front();
  const GoodputCase months = plan_goodput(choice, choice.question.cluster, p.step);
  const BillQuestion asked =
      plan_bill_question(choice, choice.question.cluster, p.step, months, goodput(months));
  CHECK(asked.duration.evidence == Evidence::estimated);
  CHECK(asked.duration.source == "orrery-estimate");
  CHECK(asked.duration.get() == p.duration);
  CHECK(asked.duration.low == asked.duration.value);
}

TEST_CASE("an answer on the largest count that is searched says so") {
  // A count is answered with made-up points, on a wiring that does not end: the search alone is
  // tested.
  PlanChoice choice = small_choice("tpu-v5p", 0);
  choice.goal.objective = PlanObjective::time;
  const auto answered = [&](std::int64_t fastest) {
    const std::function<PlanPoint(std::int64_t)> at = [&](std::int64_t gpus) {
      PlanPoint p{.gpus = gpus, .effective = 0.9};
      p.step.fits = true;
      p.feasible = true;
      const double off = std::log2(static_cast<double>(gpus) / static_cast<double>(fastest));
      p.duration = p.finish = Seconds(day * (1 + std::abs(off)));
      return p;
    };
    std::vector<PlanPoint> tried;
    StopPoint stop;
    return search_count({.choices = {choice}}, 0, at, stop, tried);
  };
  const PlanPoint largest = answered(plan_most_gpus);
  CHECK(largest.gpus == plan_most_gpus);
  CHECK(largest.largest_tried);
  CHECK(largest.binding.empty());
  CHECK_FALSE(answered(4096).largest_tried);
  CHECK(answered(4096).gpus == 4096);
}

TEST_CASE("a wait for machines moves the finish, not the work") {
  Plan question;
  question.choices = {small_choice("dgx-h100", 32), small_choice("dgx-h100", 32)};
  question.choices[1].terms.wait = Seconds(40 * day);
  const PlanResult result = answer(question);
  CHECK(result.points[0].duration == result.points[1].duration);
  CHECK((result.points[1].finish - result.points[0].finish).si() == Approx(40 * day));
}

TEST_CASE("counts are sorted, whole and in their limits") {
  for (const char* name : {"dgx-h100", "gb200-nvl72", "rubin-ultra-nvl576", "tpu-v5p", "l40s-4"}) {
    const Fabric fabric = load_cluster(name, 4).fabric;
    for (const int parts : {1, 2, 8}) {
      const auto counts = plan_counts(fabric, 100, 20000, parts);
      REQUIRE(!counts.empty());
      CHECK(std::is_sorted(counts.begin(), counts.end()));
      CHECK(std::adjacent_find(counts.begin(), counts.end()) == counts.end());
      CHECK(counts.front() >= 100);
      CHECK(counts.back() <= 20000);
      CHECK(counts.back() > 20000 / 2);
    }
  }
  const auto racks = plan_counts(load_cluster("gb200-nvl72", 72).fabric, 1, 300, 1);
  CHECK(racks == std::vector<std::int64_t>{64, 72, 128, 144, 256, 288});
}

TEST_CASE("an interrupted plan says which points are not known") {
  Plan question;
  question.choices = {small_choice("dgx-h100", 32)};
  set_interrupted(true);
  const PlanResult result = answer(question);
  set_interrupted(false);
  CHECK(result.stopped_early());
  CHECK(!result.best);
  CHECK(result.points.front().step.why_not.find("stopped") != std::string::npos);
}

TEST_CASE("a plan that was stopped ends at the same place again, on any number of threads") {
  Plan question;
  for (const char* cluster : {"dgx-h100", "dgx-h200", "dgx-b200"})
    for (const std::int64_t gpus : {16, 64}) {
      PlanChoice choice = small_choice(cluster, gpus);
      choice.any_count = gpus == 64;
      question.choices.push_back(std::move(choice));
    }
  for (const std::int64_t groups : {1, 3, 6}) {
    PlanOptions options{.threads = 2};
    options.progress = [&](std::int64_t done, std::int64_t) {
      if (done == groups) set_interrupted(true);
    };
    const PlanResult was = plan(question, options);
    set_interrupted(false);
    INFO(groups << " groups");
    REQUIRE(was.stopped_early());
    for (const int threads : {1, 3}) {
      const PlanResult again =
          plan(question, {.threads = threads, .stop_after = was.stopped_after});
      CHECK(again.stopped_after == was.stopped_after);
      CHECK(again.best == was.best);
      REQUIRE(again.points.size() == was.points.size());
      for (std::size_t i = 0; i < was.points.size(); ++i) {
        CHECK(again.points[i].gpus == was.points[i].gpus);
        CHECK(again.points[i].finish == was.points[i].finish);
        CHECK(again.points[i].fully_searched == was.points[i].fully_searched);
        CHECK(again.points[i].step.why_not == was.points[i].step.why_not);
        CHECK(again.tried[i].size() == was.tried[i].size());
      }
    }
  }
  CHECK_THROWS_AS(plan(question, {.stop_after = {1}}), Error);
}

TEST_CASE("levers and remedies of a point save time, and its range holds it") {
  Plan question;
  question.choices = {small_choice("dgx-h100", 64)};
  const PlanResult result = answer(question);
  const PlanDetail detail = plan_detail(question, result.points.front(), nullptr);
  const double days = detail.goodput.days;
  CHECK(detail.low.si() <= days * day);
  CHECK(detail.high.si() >= days * day);
  REQUIRE(!detail.levers.empty());
  for (const PlanLever& lever : detail.levers) {
    CHECK(lever.days > 0);
    CHECK(lever.days < days);
    CHECK(lever.dollars > 0);
  }
  CHECK(std::is_sorted(detail.levers.begin(), detail.levers.end(),
                       [](const PlanLever& a, const PlanLever& b) { return a.days > b.days; }));
  REQUIRE(detail.bill.job);
  CHECK(detail.bill.job->cost.value.si() == Approx(result.points.front().cost).epsilon(1e-6));
}

TEST_CASE("a job that fails faster than it recovers never ends, and a remedy is named") {
  Plan question;
  question.choices = {small_choice("dgx-h100", 64), small_choice("dgx-h100", 64)};
  for (FailureMode& f : question.choices[1].terms.reliability.failures)
    for (auto* rate : {&f.rate.value, &f.rate.low, &f.rate.high})
      if (*rate) *rate = **rate * 3e4;
  const PlanResult result = answer(question);
  CHECK(result.points[0].ends());
  CHECK_FALSE(plan_stall(question, result.points[0]));
  const PlanPoint& stuck = result.points[1];
  REQUIRE(stuck.step.fits);
  CHECK_FALSE(stuck.ends());
  CHECK_FALSE(stuck.feasible);
  const auto stall = plan_stall(question, stuck);
  REQUIRE(stall);
  CHECK(stall->between_failures < stall->recovery);
  for (const PlanPoint& p : result.front) CHECK(p.ends());
}

TEST_CASE("points are one machine when nothing that counts differs") {
  Plan question;
  for (const char* cluster : {"gb300-4plane", "gb300-sites", "dgx-h100"})
    question.choices.push_back(small_choice(cluster, 64));
  question.choices.push_back(small_choice("gb300-4plane", 128));
  const PlanResult result = answer(question);
  const auto& p = result.points;
  CHECK(same_machine(p[0], p[1]));
  CHECK(same_machine(p[1], p[0]));
  CHECK_FALSE(same_machine(p[0], p[2]));
  CHECK_FALSE(same_machine(p[0], p[3]));
}

TEST_CASE("what a late job needs brings it to its deadline") {
  Plan question;
  question.choices = {small_choice("dgx-h100", 32)};
  const Seconds whole = answer(question).points.front().duration;
  question.choices[0].goal.allowed = whole * 0.7;
  const PlanResult result = answer(question);
  const PlanPoint& p = result.points.front();
  REQUIRE(p.step.fits);
  REQUIRE_FALSE(p.feasible);
  const PlanDetail detail = plan_detail(question, p, nullptr);
  REQUIRE(detail.need);
  // So much faster, with the present share of the time, it ends on the day.
  const PlanNeed::Way& now = detail.need->ways.front();
  GoodputCase faster = detail.goodput_case;
  faster.step = faster.step / now.faster;
  CHECK(goodput(faster).days * day == Approx(0.7 * whole.si()).epsilon(0.01));
  CHECK(now.faster == Approx(1 / 0.7));
  CHECK(detail.need->all_levers > 1);
  question.choices[0].goal.allowed = whole * 2.0;
  const PlanResult early = answer(question);
  CHECK_FALSE(plan_detail(question, early.points.front(), nullptr).need);
}

TEST_CASE("a deadline that nothing meets has the same nearest however tight it is") {
  PlanGoal goal{.objective = PlanObjective::gpus};
  std::vector<PlanPoint> nearest;
  // At a few hours even the least count by the peaks is far beyond the fastest machine.
  for (const double days : {0.5, 0.2, 0.05}) {
    goal.allowed = Seconds(days * day);
    nearest.push_back(found(goal));
    CAPTURE(days, nearest.back().gpus, nearest.back().finish.si() / day);
    REQUIRE(nearest.back().step.fits);
    CHECK_FALSE(nearest.back().feasible);
    CHECK(nearest.back().finish.si() == Approx(nearest.front().finish.si()).epsilon(0.05));
  }
}

TEST_CASE("an amount of which a part is unknown comes after one that is known") {
  PlanPoint known{.gpus = 8, .step = {.fits = true}, .cost = 100};
  PlanPoint part = known;
  part.unknown_costs = {"fibre-long-haul: price"};
  CHECK(plan_rank(known, PlanObjective::cost) < plan_rank(part, PlanObjective::cost));
  part.cost = 10;
  CHECK(plan_rank(known, PlanObjective::cost) < plan_rank(part, PlanObjective::cost));
  CHECK(plan_rank(part, PlanObjective::time) == plan_rank(known, PlanObjective::time));
  part.unknown_carbon = {"accelerator tpu-v5p: embodied carbon"};
  known.carbon = 2, part.carbon = 1;
  CHECK(plan_rank(known, PlanObjective::carbon) < plan_rank(part, PlanObjective::carbon));
}

TEST_CASE("without the price of the accelerators no budget is met") {
  PlanChoice choice = small_choice("dgx-h100", 16);
  choice.question.cluster.device.price = {};
  choice.goal.budget = choice.goal.capital = Dollars(1e12);
  const PlanPoint p = answer({.choices = {choice}}).points.front();
  REQUIRE(p.verdicts.size() == 2);
  for (const PlanVerdict& v : p.verdicts) CHECK_FALSE(v.met());
  REQUIRE(p.step.fits);
  CHECK_FALSE(p.cost_known());
  CHECK_FALSE(p.feasible);
  // A limit of capital cannot be held against it: that is said of it alone.
  choice.any_count = true;
  choice.goal.capital = Dollars(1e9);
  const PlanPoint unknown = answer({.choices = {choice, small_choice("dgx-h200", 16)}}).points[0];
  CHECK_FALSE(unknown.step.fits);
  CHECK(unknown.step.why_not.find("price") != std::string::npos);
}
