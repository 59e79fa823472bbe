// SPDX-License-Identifier: Apache-2.0
// Tests that a plan whose searches parts share is the plan of one process.
#include <catch2/catch.hpp>

#include "tests/advise/shared_tasks.h"
#include "tests/plan/small_plan.h"

namespace orrery {
namespace {

Plan small_plan() {
  Plan plan{.varied = {"cluster"}, .choices = {}};
  for (const char* cluster : {"dgx-h100", "dgx-a100", "dgx-h200"}) {
    plan.choices.push_back(small_choice(cluster, 64));
    plan.choices.back().values = {cluster};
  }
  plan.choices.push_back(small_choice("dgx-h100", 0));
  plan.choices.back().values = {"any count"};
  plan.choices.back().goal.allowed = Seconds(60 * day);
  return plan;
}

void check_same(const PlanPoint& a, const PlanPoint& b) {
  CHECK(a.gpus == b.gpus);
  CHECK(a.step.fits == b.step.fits);
  CHECK(a.step.best.layout == b.step.best.layout);
  CHECK(a.step.best.step_time == b.step.best.step_time);
  CHECK(a.step.mfu == b.step.mfu);
  CHECK(a.duration == b.duration);
  CHECK(a.cost == b.cost);
  CHECK(a.energy == b.energy);
  CHECK(a.racks == b.racks);
  CHECK(a.binding == b.binding);
  CHECK(a.fully_searched == b.fully_searched);
}

}  // namespace

TEST_CASE("a plan in parts has the points, counts and best of one plan") {
  const Plan question = small_plan();
  const PlanResult alone = plan(question, {.threads = 1, .full_batches = 20});
  std::map<std::uint64_t, std::string> known;
  for (const std::uint64_t i : {2U, 0U, 1U}) {
    TasksInMemory part(known, i, 3);
    static_cast<void>(plan(question, {.threads = 1, .full_batches = 20, .tasks = &part}));
  }
  CHECK(known.size() == question.choices.size());
  // What follows the parts is searched once, and then known too.
  for (const int expected : {1, 0}) {
    TasksInMemory merge(known, 0, 0);
    const PlanResult merged = plan(question, {.threads = 1, .full_batches = 20, .tasks = &merge});
    CHECK(merge.made() == expected);
    CHECK(merged.best == alone.best);
    REQUIRE(merged.points.size() == alone.points.size());
    for (std::size_t i = 0; i < alone.points.size(); ++i) {
      check_same(merged.points[i], alone.points[i]);
      REQUIRE(merged.tried[i].size() == alone.tried[i].size());
      for (std::size_t t = 0; t < alone.tried[i].size(); ++t)
        check_same(merged.tried[i][t], alone.tried[i][t]);
    }
    REQUIRE(merged.front.size() == alone.front.size());
    for (std::size_t i = 0; i < alone.front.size(); ++i)
      check_same(merged.front[i], alone.front[i]);
  }
}

}  // namespace orrery
