// SPDX-License-Identifier: Apache-2.0
// Holds predictions to law 12: what is not named does not matter, to the bit.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "sim/outcome/assumptions.h"
#include "sim/outcome/extrapolation.h"
#include "sim/outcome/simulate.h"
#include "workloads/model/model_catalog.h"

using namespace orrery;

namespace {

Scenario make_scenario(const std::string& model, const std::string& cluster, std::int64_t gpus,
                       const Layout& layout) {
  Scenario s{.cluster = load_cluster(cluster, gpus),
             .model = load_model(model, data_root() / "workloads/catalog/models")};
  s.job.sequence = 4096;
  s.job.global_batch = 256;
  s.layout = layout;
  s.stack = load_stack("nemo",
                       {.architecture = std::string(to_text(s.cluster.device.architecture)),
                        .precision = layout.precision,
                        .moe = s.model.has_experts(),
                        .task = s.job.task},
                       data_root() / "workloads/catalog/stacks");
  return s;
}

bool same(const Prediction& a, const Prediction& b) {
  return a.step_time == b.step_time && a.energy_per_step == b.energy_per_step &&
         a.memory.margin == b.memory.margin && a.price.per_step == b.price.per_step;
}

}  // namespace

TEST_CASE("law 12: perturbing a value that a prediction does not name leaves it bit-identical") {
  const std::vector<Scenario> scenarios = {
      make_scenario("llama3-8b", "dgx-h100", 16, {.tp = 2, .pp = 2, .dp = 4}),
      make_scenario("mixtral-8x7b", "dgx-b200", 16,
                    {.tp = 1, .pp = 1, .dp = 16, .ep = 8, .precision = PrecisionRecipe::mxfp8})};
  for (const Scenario& original : scenarios) {
    const Prediction base = simulate(original, {});
    std::set<std::string> named;
    for (const Assumption& a : base.assumptions) named.insert(a.path);
    REQUIRE(!named.empty());
    Scenario scenario = original;
    int unnamed = 0;
    for (UncertainValue& u : collect_uncertain(scenario)) {
      if (named.count(u.path) > 0) continue;
      ++unnamed;
      // A factor that find_assumptions does not try itself.
      u.set(u.value == 0 ? 3e-6 : u.value * 1.07);
      INFO(u.path);
      CHECK(same(simulate(scenario, {.with_assumptions = false}), base));
      u.set(u.value);
    }
    CHECK(unnamed > 0);
  }
}

TEST_CASE("the range holds the prediction and widens with an assumption") {
  Scenario s = make_scenario("llama3-8b", "dgx-h100", 16, {.tp = 2, .pp = 1, .dp = 8});
  const Prediction narrow = simulate(s, {});
  CHECK(narrow.low <= narrow.step_time);
  CHECK(narrow.step_time <= narrow.high);
  s.cluster.site.clock_factor.low = 0.5;
  const Prediction wide = simulate(s, {});
  CHECK(wide.high > narrow.high);
  CHECK(wide.step_time == narrow.step_time);
}

TEST_CASE("moving values together finds what moving them one by one finds") {
  const std::vector<Scenario> scenarios = {
      make_scenario("llama3-8b", "dgx-h100", 16, {.tp = 2, .pp = 2, .dp = 4}),
      make_scenario("mixtral-8x7b", "gb300-nvl72", 16,
                    {.tp = 1, .pp = 1, .dp = 16, .ep = 8, .precision = PrecisionRecipe::mxfp8}),
      make_scenario("llama3-8b", "dgx-a100", 32, {.tp = 1, .pp = 1, .dp = 32, .zero_stage = 3})};
  for (const Scenario& original : scenarios) {
    const Prediction base = simulate(original, {});
    Scenario scenario = original;
    widen_extrapolated(scenario.cluster.calibration, base.extrapolations);
    std::vector<std::string> alone, together;
    for (UncertainValue& u : collect_uncertain(scenario)) {
      bool matters = false;
      const double other = u.value == 0 ? 1e-6 : u.value * 1.1;
      for (const double probe : {u.low, u.high, other, u.value * 0.9}) {
        u.set(probe);
        matters = matters || !same(simulate(scenario, {.with_assumptions = false}), base);
      }
      u.set(u.value);
      if (matters) alone.push_back(u.path);
    }
    for (const Assumption& a : base.assumptions) together.push_back(a.path);
    std::sort(alone.begin(), alone.end());
    std::sort(together.begin(), together.end());
    CHECK(together == alone);
  }
}
