// SPDX-License-Identifier: Apache-2.0
// Tests what limits steps and what better parts buy, where the answer is known.
#include "sim/explain/levers.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/explain/traps.h"
#include "tests/explain/whole_scenarios.h"

namespace orrery {
namespace {

const PhaseLimit& phase(const std::vector<PhaseLimit>& limits, const std::string& name) {
  const auto at = std::find_if(limits.begin(), limits.end(),
                               [&](const PhaseLimit& p) { return p.phase == name; });
  REQUIRE(at != limits.end());
  return *at;
}

const Counterfactual& line(const std::vector<Counterfactual>& all, const std::string& part) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const Counterfactual& c) {
    return c.name.find(part) != std::string::npos;
  });
  REQUIRE(at != all.end());
  return *at;
}

TEST_CASE("law: elasticities of steps and passes are shares") {
  for (const ScenarioWords& words : varied_scenarios()) {
    const auto limits = phase_limits(whole_scenario(words));
    INFO(words.cluster << " " << words.model << " " << to_text(words.layout));
    REQUIRE_FALSE(limits.empty());
    CHECK(limits.front().phase == "step");
    double shares = 0;
    for (const PhaseLimit& p : limits) {
      INFO(p.phase << ": " << p.sentence);
      CHECK(p.time > Seconds(0));
      CHECK_FALSE(p.sentence.empty());
      if (p.phase != "step") shares += p.share;
      if (p.phase != "step" && p.phase != "forward" && p.phase != "backward") continue;
      double sum = 0;
      for (const double e : p.elasticity) {
        CHECK(e >= -0.005);
        CHECK(e <= 1.005);
        sum += e;
      }
      CHECK(sum <= 1.02);
      CHECK(p.fixed >= -0.02);
    }
    CHECK(shares == Approx(1).margin(0.01));
  }
}

TEST_CASE("phases name the resource that is known to limit them") {
  // An optimizer streams; what is left at the end of a step is the host's.
  const auto dense = phase_limits(whole_scenario({.layout = {.tp = 8, .pp = 2, .dp = 4}}));
  CHECK(phase(dense, "optimizer").limit == Resource::memory);
  CHECK(phase(dense, "optimizer").of(Resource::memory) > 0.9);
  CHECK(phase(dense, "rest").limit == Resource::host);
  CHECK(phase(dense, "rest").of(Resource::host) == Approx(1).margin(0.05));
  // Large products on a 700 W board.
  const auto large = phase_limits(whole_scenario({.model = "llama3.1-405b",
                                                  .layout = {.tp = 8, .pp = 8, .dp = 2},
                                                  .sequence = 8192,
                                                  .batch = 64}));
  CHECK(phase(large, "backward").limit == Resource::power);
  CHECK(phase(large, "backward").of(Resource::tensor_cores) > 0.4);
  CHECK(phase(large, "step").sentence.find("the power limit") != std::string::npos);
  // Tensor parallelism over hosts.
  const auto spread = phase_limits(whole_scenario({.layout = {.tp = 16, .dp = 1}}));
  CHECK(phase(spread, "forward").of(Resource::network) > 0.2);
  // One process that launches everything, checked by a wrapper.
  const auto checked = phase_limits(
      whole_scenario({.stack = "nanotron-debug", .layout = {.tp = 8, .dp = 1}, .batch = 8}));
  CHECK(phase(checked, "step").limit == Resource::host);
}

TEST_CASE("counterfactuals are never slower and say where they do not apply") {
  for (const ScenarioWords& words : varied_scenarios()) {
    const Scenario s = whole_scenario(words);
    const Seconds base = step_time(s);
    INFO(words.cluster << " " << words.model);
    for (const Counterfactual& c : counterfactuals(s)) {
      INFO(c.name << ": " << c.note);
      // Another domain may leave other accelerators idle.
      if (c.name.find("scale-up domain") == std::string::npos || !c.needs_advice)
        CHECK(c.step <= base * (1 + 1e-6));
      CHECK(c.faster == Approx(base / c.step - 1).margin(1e-9));
      if (!c.applies) {
        CHECK(c.step == base);
        CHECK_FALSE(c.note.empty());
      }
      if (c.faster_at_most) CHECK(*c.faster_at_most >= c.faster - 1e-6);
    }
  }
}

TEST_CASE("counterfactuals know what a job does not use") {
  const auto one_host = counterfactuals(whole_scenario({.layout = {.tp = 2, .dp = 4}}));
  CHECK_FALSE(line(one_host, "twice the network").applies);
  CHECK_FALSE(line(one_host, "twice the scale-up domain").applies);
  CHECK_FALSE(line(one_host, "no pipeline bubble").applies);
  CHECK(line(one_host, "inside the scale-up").applies);
  const auto many = counterfactuals(whole_scenario({.layout = {.tp = 16, .pp = 2, .dp = 2}}));
  CHECK(line(many, "twice the network").applies);
  CHECK(line(many, "twice the scale-up domain").faster > 0.01);
  CHECK(line(many, "no pipeline bubble").faster > 0.01);
  CHECK(line(many, "HBM capacity").needs_advice);
  CHECK(line(many, "HBM capacity").faster == 0);
}

TEST_CASE("inference steps have limits too") {
  const auto limits = [](Task task) {
    Scenario s = whole_scenario({.layout = {.tp = 4, .pp = 2}});
    s.job = {.task = task, .sequence = 2048, .batch = 8, .context = 4096};
    CHECK(counterfactuals(s).size() >= 12);
    CHECK_NOTHROW(find_traps(s));
    return phase(phase_limits(s), "forward");
  };
  const PhaseLimit prompt = limits(Task::prefill), token = limits(Task::decode);
  CHECK(prompt.share > 0.3);
  CHECK(token.share > 0.3);
  // A token streams the weights that a prompt multiplies with many rows.
  CHECK(token.of(Resource::memory) > prompt.of(Resource::memory));
  CHECK(token.of(Resource::tensor_cores) < prompt.of(Resource::tensor_cores));
}

TEST_CASE("counterfactuals can be asked of every cluster") {
  for (const std::string& name : cluster_names()) {
    const Cluster one = load_cluster(name, 1);
    const bool alone = one.fabric.scale_out.kind == ScaleOutKind::none;
    const std::int64_t gpus = one.fabric.scale_up.domain * (alone ? 1 : 2);
    const Scenario s =
        whole_scenario({.cluster = name.c_str(), .layout = {.dp = gpus}, .batch = 2 * gpus});
    INFO(name);
    CHECK(counterfactuals(s).size() >= 12);
    CHECK(phase_limits(s).size() >= 3);
  }
}

}  // namespace
}  // namespace orrery
