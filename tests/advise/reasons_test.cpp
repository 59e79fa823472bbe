// SPDX-License-Identifier: Apache-2.0
// Tests what is said for a layout, and what runs now held against what is advised.
#include "sim/explain/reasons.h"

#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

#include "sim/engine/step/step.h"
#include "sim/explain/explain.h"
#include "sim/explain/what_if.h"
#include "sim/outcome/simulate.h"
#include "tests/advise/small_question.h"
#include "tests/explain/whole_scenarios.h"

namespace orrery {
namespace {

std::map<std::string, std::string> flags_of(const Scenario& s) {
  std::map<std::string, std::string> flags;
  const LaunchFlags all = launch_flags(s.layout, s.model, s.job, s.stack);
  for (const LaunchFlag& f : all.flags) flags[f.name] = f.value.empty() ? "on" : f.value;
  for (const std::string& e : all.environment)
    flags[e.substr(0, e.find('='))] = e.substr(e.find('=') + 1);
  return flags;
}

Scenario changed(Scenario s, const Layout& layout) {
  s.layout = layout;
  return s;
}

TEST_CASE("changing the flags that a comparison names makes one start of the other") {
  for (const ScenarioWords& words : varied_scenarios()) {
    const Scenario now = whole_scenario(words);
    Layout layout = now.layout;
    layout.micro_batch = 2;
    layout.recompute = layout.recompute == Recompute::full ? Recompute::none : Recompute::full;
    const Scenario advised = changed(now, layout);
    const Comparison c = compare_with(now, {}, &advised);
    std::map<std::string, std::string> flags = flags_of(now);
    for (const FlagChange& change : c.flags) {
      INFO(change.name);
      CHECK(change.was != change.is);
      CHECK(
          (change.was.empty() ? flags.count(change.name) == 0 : flags[change.name] == change.was));
      if (change.is.empty())
        flags.erase(change.name);
      else
        flags[change.name] = change.is;
    }
    CHECK(flags == flags_of(advised));
    REQUIRE(c.where.size() == 2);
    CHECK(c.faster == Approx(to_seconds(c.where[0].total()) / to_seconds(c.where[1].total()) - 1));
    CHECK(c.stack.empty());
  }
}

TEST_CASE("decisions are tried one at a time") {
  const Scenario now = whole_scenario({.layout = {.tp = 8, .dp = 2, .recompute = Recompute::full}});
  const Scenario advised = changed(now, {.tp = 2, .dp = 8, .micro_batch = 2});
  const Comparison c = compare_with(now, {}, &advised);
  REQUIRE(c.singles.size() == 3);
  for (const auto& [named, layout] :
       {std::pair<const char*, Layout>{"TP2 in place of TP8",
                                       {.tp = 2, .dp = 8, .recompute = Recompute::full}},
        {"no recompute in place of full", {.tp = 8, .dp = 2}},
        {"MB2 in place of MB1",
         {.tp = 8, .dp = 2, .micro_batch = 2, .recompute = Recompute::full}}}) {
    const std::string what = named;
    INFO(what);
    const auto found = std::find_if(
        c.singles.begin(), c.singles.end(),
        [&](const SingleChange& one) { return one.sentence.starts_with(what + ": "); });
    REQUIRE(found != c.singles.end());
    CHECK(found->fits);
    CHECK(found->faster ==
          Approx(step_time(now) / step_time(changed(now, layout)) - 1).margin(1e-9));
  }
  CHECK(std::is_sorted(c.singles.begin(), c.singles.end(),
                       [](const auto& a, const auto& b) { return a.faster > b.faster; }));
  CHECK(compare_with(now, {}, &now).singles.empty());
  // What does not fit alone comes last and says so.
  const Scenario tight = whole_scenario(
      {.model = "llama3-70b",
       .layout = {.tp = 8, .pp = 4, .dp = 1, .micro_batch = 4, .recompute = Recompute::full}});
  Layout lean = tight.layout;
  lean.micro_batch = 1;
  lean.recompute = Recompute::none;
  const Scenario other = changed(tight, lean);
  const Comparison d = compare_with(tight, {}, &other);
  REQUIRE(d.singles.size() == 2);
  CHECK(d.singles.front().fits);
  CHECK_FALSE(d.singles.back().fits);
}

TEST_CASE("nothing changes against itself, and another release is said") {
  const Scenario now = whole_scenario({.layout = {.tp = 2, .dp = 4}});
  const Comparison same = compare_with(now, {}, &now);
  CHECK(same.faster == 0);
  CHECK(same.flags.empty());
  CHECK(same.stack.empty());
  const Scenario old =
      whole_scenario({.stack = "megatron-core@0.12", .layout = {.tp = 2, .dp = 4}});
  REQUIRE(compare_with(old, {}, &now).stack.size() == 1);
  const Comparison alone = compare_with(now, {}, nullptr);
  CHECK(alone.where.empty());
  CHECK(alone.difference.empty());
}

TEST_CASE("a bubble that waits for a slower stage is told from the schedule's") {
  Layout layout{.tp = 2, .pp = 4, .dp = 1};
  const auto why = [&](const std::vector<std::int64_t>& stage_layers, std::int64_t batch) {
    layout.stage_layers = stage_layers;
    const Scenario s = whole_scenario({.layout = layout, .batch = batch});
    const StepResult r = step(step_context(s), s.model, s.job, s.layout, s.stack);
    const StageBreakdown mean = mean_breakdown(r);
    CHECK(least_bubble(r) <= mean[Label::bubble]);
    return explain_limit(s.layout, s.job, mean, least_bubble(r));
  };
  CHECK(why({4, 4, 4, 20}, 64).find("waiting for the stage with most work") != std::string::npos);
  // Of few microbatches on stages alike, fill and drain are all.
  CHECK(why({8, 9, 9, 6}, 4).find("waiting for the stage") == std::string::npos);
}

TEST_CASE("reasons are given for training on the ideal network") {
  Scenario s = whole_scenario({.layout = {.tp = 2, .dp = 4}});
  const Reasons training = reasons_for(s, {});
  CHECK(training.limits.size() > 2);
  CHECK(training.levers.size() > 10);
  CHECK_FALSE(training.flags.text.empty());
  s.network = NetworkMode::flow;
  CHECK(reasons_for(s, {}).levers.empty());
  CHECK_FALSE(reasons_for(s, {}).flags.text.empty());
  s.network = NetworkMode::ideal;
  s.job = {.task = Task::prefill, .sequence = 4096, .batch = 1};
  CHECK(reasons_for(s, {}).limits.empty());
}

TEST_CASE("advice tells how it stands to what runs now") {
  const Question question = small_question(small_dense_model(), 16);
  const Advice plain = advise(question, {.top = 3});
  CHECK_FALSE(plain.like);
  REQUIRE(plain.reasons.ranking.rivals.size() == 2);
  CHECK_FALSE(plain.reasons.limits.empty());
  AdviseOptions options{.top = 3};
  options.like = Scenario{.cluster = question.cluster,
                          .model = question.model,
                          .job = question.job,
                          .layout = plain.best[1].layout,
                          .stack = small_stack(question.model)};
  const Advice advice = advise(question, options);
  REQUIRE(advice.like);
  CHECK(advice.reasons.ranking.rivals.size() == 3);
  CHECK(advice.like->rival.behind == Approx(plain.reasons.ranking.rivals[0].behind));
  CHECK(advice.like->prediction.step_time.si() == Approx(plain.best[1].step_time.si()));
  CHECK(advice.like->faster > 0);
  options.like->layout = plain.best[0].layout;
  CHECK(advise(question, options).like->faster == Approx(0).margin(1e-12));
}

TEST_CASE("what runs now is predicted even where nothing can be advised") {
  Model large = small_dense_model();
  large.layers.assign(256, 0);
  const Question question = small_question(large, 16);
  AdviseOptions options{.memory_reserve = 0.9};
  options.like = Scenario{.cluster = question.cluster,
                          .model = question.model,
                          .job = question.job,
                          .layout = {.tp = 8, .dp = 2},
                          .stack = small_stack(question.model)};
  const Advice advice = advise(question, options);
  REQUIRE(advice.best.empty());
  REQUIRE(advice.like);
  CHECK(advice.like->prediction.step_time > Seconds(0));
  CHECK(advice.like->where.empty());
}

}  // namespace
}  // namespace orrery
