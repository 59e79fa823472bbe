// SPDX-License-Identifier: Apache-2.0
// Holds sizes that limits find against the same limits at a given size, and the reasons for them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "hw_models/catalog.h"
#include "sim/plan/plan.h"
#include "sim/plan/point.h"
#include "tests/plan/small_plan.h"
#include "topologies/parts.h"
#include "workloads/model/model_catalog.h"

using namespace orrery;

namespace {

// All of one ZeRO stage too, so that counts differ by their machines alone.
PlanChoice one_stage_choice(const std::string& cluster, std::int64_t gpus) {
  PlanChoice choice = small_choice(cluster, gpus);
  choice.question.limits.zero_stage = 1;
  return choice;
}

PlanResult answer(const PlanChoice& choice, std::int64_t batches = 0) {
  return plan({.choices = {choice}}, {.threads = 2, .full_batches = batches});
}

PlanPoint at_count(PlanChoice choice, std::int64_t gpus, std::int64_t batches = 0) {
  choice.any_count = false;
  choice.question.cluster.gpus = gpus;
  return answer(choice, batches).points.front();
}

// Each limit, at a random size that the small model can use.
struct Limited {
  const char* name;
  void (*set)(PlanGoal&, double machines);
};
const std::vector<Limited>& limits() {
  static const std::vector<Limited> all = {
      {"power", [](PlanGoal& g, double n) { g.power = Watts(2000 * n); }},
      {"capital", [](PlanGoal& g, double n) { g.capital = Dollars(60e3 * n); }},
      {"racks", [](PlanGoal& g, double n) { g.racks = std::max(1.0, n / 16); }},
      {"floor", [](PlanGoal& g, double n) { g.square_metres = 4 * std::max(1.0, n / 16); }},
  };
  return all;
}

}  // namespace

TEST_CASE(
    "the count that a limit of size finds meets it when asked for, and one host more does not") {
  std::mt19937_64 random(16);
  std::uniform_real_distribution<double> octaves(3, 9);
  for (const char* cluster : {"dgx-h100", "gb200-nvl72", "tpu-v5p", "tpu-v6e", "mi300x-8"})
    for (const Limited& limit : limits()) {
      PlanChoice choice = one_stage_choice(cluster, 0);
      const double machines = std::exp2(octaves(random));
      limit.set(choice.goal, machines);
      const Plan question{.choices = {choice}};
      const PlanResult found = answer(choice);
      const PlanPoint& p = found.points.front();
      INFO(cluster << " by " << limit.name << " of " << machines << ": " << p.step.why_not);
      // Too little for one host or rack is said, not searched.
      if (!p.step.fits) {
        CHECK(p.step.why_not.find(limit.name) != std::string::npos);
        continue;
      }
      REQUIRE(p.feasible);
      CHECK(p.gpus <= p.allowed);
      CHECK(p.allowed_by == limit.name);
      const PlanPoint same = at_count(choice, p.gpus);
      CHECK(same.feasible);
      CHECK(same.finish == p.finish);
      // Whether or not a layout divides over so many: the machine alone is judged.
      const auto sized = [&](std::int64_t gpus) {
        const PlanPoint q = plan_point(question, 0, gpus, spread_over(p.step, gpus));
        return std::all_of(q.verdicts.begin(), q.verdicts.end(),
                           [](const PlanVerdict& v) { return !v.of_size() || v.met(); });
      };
      CHECK(sized(p.allowed));
      CHECK_FALSE(sized(p.allowed + choice.question.cluster.gpus_per_host));
      // Nothing that was tried beyond the limit was taken for the best.
      for (const PlanPoint& t : found.tried.front())
        if (t.gpus > p.allowed) CHECK_FALSE(t.feasible);
    }
}

TEST_CASE("the fewest accelerators by a deadline meet it, and the next count below does not") {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> octaves(2, 8);
  for (const char* cluster : {"dgx-h100", "tpu-v5p", "dgx-b200"})
    for (int i = 0; i < 3; ++i) {
      PlanChoice choice = one_stage_choice(cluster, 0);
      choice.goal.objective = PlanObjective::gpus;
      choice.goal.allowed = Seconds(day * std::exp2(octaves(random)));
      const PlanPoint p = answer(choice, 50).points.front();
      INFO(cluster << " in " << choice.goal.allowed.si() / day << " days: " << p.gpus);
      if (!p.feasible) continue;  // no count is in time, which another test holds
      CHECK(at_count(choice, p.gpus, 50).feasible);
      const auto below = plan_counts(choice.question.cluster.fabric, 1, p.gpus - 1, 8);
      if (p.gpus > 1) CHECK_FALSE(at_count(choice, below.back(), 50).feasible);
    }
}

TEST_CASE("more megawatts buy more TPUs") {
  for (const char* cluster : {"tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7", "tpu-8t"}) {
    std::int64_t before = 0;
    for (const double megawatts : {0.1, 1.0, 10.0, 100.0}) {
      PlanChoice choice = one_stage_choice(cluster, 0);
      choice.goal.power = Watts(megawatts * 1e6);
      const AffordableCount count = accelerators_for_power(
          choice.question.cluster, choice.terms.facts,
          {.accelerators = choice.question.cluster.gpus_per_host, .ranges = false},
          choice.goal.power);
      INFO(cluster << " " << megawatts << " MW: " << count.count);
      CHECK_FALSE(count.fabric_limit);
      CHECK(count.count >= 8 * before);
      before = count.count;
      const double each = choice.question.cluster.device.power_limit.get().si();
      CHECK(static_cast<double>(count.count) * each < megawatts * 1e6);
      CHECK(static_cast<double>(count.count) * each > 0.3 * megawatts * 1e6);
    }
  }
}

TEST_CASE(
    "of an amount without the accelerators' part no count is found, of one without a switch it "
    "is") {
  CHECK(first_essential({"palomar-ocs: power", "storage x: power"}).empty());
  CHECK(first_essential({"nic: power", "accelerator feynman: power limit"}) ==
        "accelerator feynman: power limit");
  PlanChoice choice = one_stage_choice("dgx-h100", 16);
  choice.question.cluster.device.power_limit = {};
  choice.goal.power = Watts(1e9);
  const PlanPoint p = answer(choice).points.front();
  REQUIRE(p.step.fits);
  REQUIRE(p.verdicts.size() == 1);
  CHECK_FALSE(p.verdicts.front().met());
}

TEST_CASE("what ends a search of sizes is what the answer says") {
  const auto bound = [](const char* cluster, auto&& set) {
    PlanChoice choice = one_stage_choice(cluster, 0);
    set(choice);
    return answer(choice).points.front();
  };
  SECTION("the wiring, where power would allow more") {
    const PlanPoint p = bound("h200-nvlink-host", [](PlanChoice& c) { c.goal.power = Watts(1e9); });
    const std::int64_t joined =
        most_joined(load_cluster("h200-nvlink-host", 1).fabric, plan_most_gpus);
    REQUIRE(joined < plan_most_gpus);
    CHECK(p.allowed_by == "wiring");
    CHECK(p.allowed <= joined);
    CHECK(p.allowed > joined - 8);
    if (p.gpus == p.allowed) CHECK(p.binding == "wiring");
  }
  SECTION("power") {
    const PlanPoint p = bound("dgx-h100", [](PlanChoice& c) { c.goal.power = Watts(2000 * 30); });
    CHECK(p.allowed_by == "power");
    CHECK(p.binding == "power");
  }
  SECTION("sizes that do not divide") {
    // 256 sequences on 250 hosts: 256 accelerators are the most of which each has one.
    const PlanPoint p = bound("dgx-h100", [](PlanChoice& c) {
      c.question.limits.tp = 1;
      c.question.limits.cp = 1;
      c.goal.power = Watts(2000 * 2000);
    });
    REQUIRE(p.step.fits);
    CHECK(p.gpus == 256);
    CHECK(p.binding == "sizes that do not divide");
  }
  SECTION("memory: fewer accelerators do not hold the weights") {
    const PlanPoint p = bound("dgx-h100", [](PlanChoice& c) {
      c.question.model = load_model("llama3.1-70b", data_root() / "workloads/catalog/models");
      c.goal.allowed = Seconds(1e5 * day);
      c.goal.objective = PlanObjective::gpus;
    });
    REQUIRE(p.step.fits);
    CHECK(p.gpus > 8);
    CHECK(p.binding == "memory");
  }
  SECTION("nothing, where one host does") {
    const PlanPoint p = bound("dgx-h100", [](PlanChoice& c) {
      c.goal.allowed = Seconds(1e5 * day);
      c.goal.objective = PlanObjective::gpus;
    });
    REQUIRE(p.step.fits);
    CHECK(p.gpus <= 8);
    CHECK(p.binding.empty());
  }
}
