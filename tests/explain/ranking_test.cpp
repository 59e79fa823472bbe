// SPDX-License-Identifier: Apache-2.0
// Tests what uncertain values do to the order of layouts, against moving each by hand.
#include "sim/explain/ranking.h"

#include <algorithm>
#include <cmath>

#include <catch2/catch.hpp>

#include "sim/engine/step/step.h"
#include "sim/explain/what_if.h"
#include "sim/outcome/assumptions.h"
#include "sim/outcome/host_power.h"
#include "sim/outcome/simulate.h"
#include "tests/explain/whole_scenarios.h"

namespace orrery {
namespace {

struct Case {
  Scenario first;
  Prediction prediction;
  std::vector<Contender> contenders;
  Ranking ranking(Objective objective = Objective::time) const {
    return rank_contenders(first, prediction, contenders, objective);
  }
};

Case case_of(const ScenarioWords& words, const std::vector<Layout>& others) {
  Case c{.first = whole_scenario(words)};
  c.prediction = simulate(c.first, {});
  c.contenders = {{c.first.layout, c.first.stack}};
  for (const Layout& layout : others) c.contenders.push_back({layout, c.first.stack});
  return c;
}

// Tensor parallelism against a pipeline: how much of its traffic shows decides which is faster.
Case close_race() {
  return case_of({.layout = {.tp = 4, .dp = 4}}, {{.tp = 2, .dp = 8}, {.tp = 1, .pp = 4, .dp = 4}});
}

double time_with(const Case& c, const Layout& layout, const std::string& path, bool high) {
  Scenario s = c.first;
  s.layout = layout;
  for (const UncertainValue& u : collect_uncertain(s))
    if (u.path == path) u.set(high ? u.high : u.low);
  return step_time(s).si();
}

TEST_CASE("a value changes the order where moving it by hand does") {
  Case c = close_race();
  // The first is the faster of the two that differ in tensor parallelism alone.
  std::sort(c.contenders.begin(), c.contenders.end(), [&](const auto& a, const auto& b) {
    return time_with(c, a.layout, "", false) < time_with(c, b.layout, "", false);
  });
  c.first.layout = c.contenders.front().layout;
  c.prediction = simulate(c.first, {});
  const Ranking ranking = c.ranking();
  std::size_t expected = 0;
  Scenario values = c.first;
  for (const UncertainValue& u : collect_uncertain(values)) {
    if (!u.path.starts_with("stack ")) continue;
    for (const bool high : {false, true}) {
      std::vector<double> times;
      for (const Contender& each : c.contenders)
        times.push_back(time_with(c, each.layout, u.path, high));
      const auto first = std::min_element(times.begin(), times.end()) - times.begin();
      const auto told = std::find_if(
          ranking.changes.begin(), ranking.changes.end(), [&](const OrderChange& change) {
            return change.path == u.path &&
                   change.end == (high ? u.described().high : u.described().low);
          });
      INFO(u.path << " " << high);
      if (first == 0 || u.low == u.high) continue;
      ++expected;
      REQUIRE(told != ranking.changes.end());
      CHECK(told->first == static_cast<std::size_t>(first));
      CHECK(told->ahead ==
            Approx(times[0] / times[static_cast<std::size_t>(first)] - 1).epsilon(1e-9));
    }
  }
  const auto of_stack =
      std::count_if(ranking.changes.begin(), ranking.changes.end(),
                    [](const OrderChange& change) { return change.path.starts_with("stack "); });
  CHECK(static_cast<std::size_t>(of_stack) == expected);
}

TEST_CASE("a value with a wide enough range does change the order, with none it does not") {
  Case c = close_race();
  const auto with_range = [&](double low, double high) {
    Case moved = c;
    Scenario& s = moved.first;
    s.stack.communication.tensor_exposed.low = low;
    s.stack.communication.tensor_exposed.high = high;
    s.stack.communication.tensor_exposed.evidence = Evidence::estimated;
    // The one with the most tensor parallelism first, and nothing of its traffic visible.
    s.stack.communication.tensor_exposed.value = 0.0;
    for (Contender& each : moved.contenders) each.stack = s.stack;
    moved.prediction = simulate(s, {});
    return moved.ranking();
  };
  const auto by_exposed = [](const Ranking& r) {
    return std::any_of(r.changes.begin(), r.changes.end(), [](const OrderChange& change) {
      return change.path.find("tensor_exposed") != std::string::npos;
    });
  };
  CHECK(by_exposed(with_range(0.0, 1.0)));
  const Ranking narrow = with_range(0.0, 0.0);
  const Ranking wide = with_range(0.0, 1.0);
  CHECK(wide.rivals.front().low < narrow.rivals.front().low);
  CHECK(wide.rivals.front().behind == Approx(narrow.rivals.front().behind));
}

TEST_CASE("what two layouts share cancels") {
  const Layout more{.tp = 4, .pp = 4, .vpp = 4, .dp = 2, .schedule = Schedule::interleaved};
  Layout fewer = more;
  fewer.vpp = 2;
  const Case c = case_of({.layout = more}, {fewer, more});
  const Ranking ranking = c.ranking();
  REQUIRE(ranking.rivals.size() == 2);
  const LogRange alone = join_effects(c.prediction.assumptions);
  const Rival& other = ranking.rivals[0];
  CHECK(other.low <= other.behind);
  CHECK(other.high >= other.behind);
  CHECK(std::log((1 + other.high) / (1 + other.low)) < 0.3 * (alone.below + alone.above));
  const Rival& same = ranking.rivals[1];
  CHECK(same.behind == 0);
  CHECK(same.low == 0);
  CHECK(same.high == 0);
  CHECK_FALSE(same.may_lead());
  CHECK(ranking.values > 0);
}

TEST_CASE("energy ranks by energy") {
  const Case c = close_race();
  const Ranking time = c.ranking(), energy = c.ranking(Objective::energy);
  const auto joules = [&](const Layout& layout) {
    const StepContext context = step_context(c.first.cluster);
    const StepResult run = step(context, c.first.model, c.first.job, layout, c.first.stack);
    const Watts host = host_power_per_accelerator(c.first.cluster);
    return (run.energy_per_gpu + host * to_seconds(run.step)).si();
  };
  const double expected = joules(c.contenders[1].layout) / joules(c.contenders[0].layout) - 1;
  CHECK(energy.rivals[0].behind == Approx(expected));
  CHECK(time.rivals[0].behind != Approx(expected));
}

}  // namespace
}  // namespace orrery
