// SPDX-License-Identifier: Apache-2.0
// Holds steps on the flow network to their laws: labels add up, same inputs same step, what is
// broken or busy never makes a step faster.
#include <catch2/catch.hpp>

#include "sim/base/parallel.h"
#include "sim/engine/step/step.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/step_case.h"

namespace orrery {
namespace {

using test::Case;
using test::make_case;

// Rails, racks, planes, one plane a NIC, hashing, no spines.
std::vector<Case> cases() {
  return {make_case("llama3-8b", "dgx-h100", 64, "megatron-core"),
          make_case("mixtral-8x7b", "gb200-nvl72", 128, "nemo"),
          make_case("gpt3-175b", "dgx-a100", 128, "megatron-deepspeed"),
          make_case("mixtral-8x7b", "h800-multiplane", 128, "megatron-core"),
          make_case("llama3-8b", "h100-roce", 64, "pytorch-fsdp2"),
          make_case("mixtral-8x7b", "h800-roce", 128, "megatron-core"),
          make_case("llama3-8b", "h100-rail-only", 128, "megatron-core"),
          make_case("llama3-8b", "gb300-4plane", 128, "megatron-core")};
}

StepResult run(const Case& c, const Layout& layout, NetworkMode network,
               const Conditions& conditions = {}) {
  StepContext context = step_context(c.cluster);
  context.network = network;
  context.conditions = conditions;
  return step(context, c.model, c.job, layout, c.stack);
}
StepResult flow(const Case& c, const Layout& layout, const Conditions& conditions = {}) {
  return run(c, layout, NetworkMode::flow, conditions);
}

// Each collective's time is rounded to picoseconds, and a step runs some ten thousand.
constexpr std::int64_t rounding = 20'000;

void check_labels(const StepResult& result) {
  for (const StageBreakdown& stage : result.stages) {
    CHECK(stage.total() == result.step);
    for (const Ticks t : stage.label) CHECK(t.ps >= 0);
  }
}

// A step on `found` takes as long as on `before`, or longer. Passes that take longer may move side
// traffic to where less of it meets collectives of their own: a part in 10,000 is allowed for that.
void check_not_faster(const StepResult& found, const StepResult& before) {
  CHECK(found.step.ps >= before.step.ps - rounding - before.step.ps / 10'000);
  check_labels(found);
}

std::vector<Conditions> what_ifs(const Case& c) {
  const std::int64_t domain = c.cluster.fabric.scale_up.domain;
  std::vector<Conditions> all(5);
  all[0].faults = {{.kind = FaultKind::nic, .accelerator = 3, .plane = -1, .remaining = 0.5}};
  all[1].scale_up_faults = {{.gpu = 1, .remaining = 0.5}};
  all[2].background = {{.first_gpu = 0, .gpus = 2 * domain, .load = 0.5}};
  all[3].background = {{.pattern = BackgroundTraffic::Pattern::all_to_all,
                        .first_gpu = 0,
                        .gpus = 2 * domain,
                        .load = 0.8}};
  all[4].faults = {{.kind = FaultKind::leaf, .leaf = 0, .remaining = 0.5}};
  return all;
}

}  // namespace

TEST_CASE("law 13 on the flow network, which takes no less than the ideal one") {
  for (const Case& c : cases()) {
    RandomStream random(fresh(13), 2);
    for (int i = 0; i < 30; ++i) {
      const Layout layout = test::random_layout(random, c.model, c.job, c.cluster.gpus);
      INFO(c.cluster.name << " " << to_text(layout));
      const StepResult ideal = run(c, layout, NetworkMode::ideal);
      const StepResult found = flow(c, layout);
      REQUIRE(found.stages.size() == static_cast<std::size_t>(layout.pp));
      check_labels(found);
      // Hashing is one draw here and the expected worst link there: either may be the slower.
      if (c.cluster.fabric.scale_out.routing != Routing::ecmp)
        CHECK(found.step.ps >= ideal.step.ps - rounding);
      CHECK(found.scale_out_bytes == ideal.scale_out_bytes);
      CHECK(found.scale_up_bytes == ideal.scale_up_bytes);
    }
  }
}

TEST_CASE("where nothing meets on an open fabric, flows take what the ideal network says") {
  const Case c = make_case("llama3-8b", "dgx-h100", 64, "megatron-core");
  Case apart = c;
  apart.stack.communication.gradient_overlap = apart.stack.communication.parameter_overlap = false;
  RandomStream random(fresh(14), 2);
  for (int i = 0; i < 60; ++i) {
    Layout layout = test::random_layout(random, c.model, c.job, c.cluster.gpus);
    // Ring attention and FSDP gather beside the passes: they may meet tensor collectives.
    if (layout.cp > 1 || layout.zero_stage == 3) continue;
    INFO(to_text(layout));
    const std::int64_t ideal = run(apart, layout, NetworkMode::ideal).step.ps;
    CHECK(std::abs(flow(apart, layout).step.ps - ideal) <= rounding);
  }
}

TEST_CASE("gradients that meet the last backward pass cost time where compute does not hide them") {
  // A domain of 64: tensor collectives and gradients share the scale-up ports.
  Case c = make_case("llama3.1-405b", "gb300-4plane", 1024, "megatron-core");
  const auto delays = [&] {
    const Layout layout{.tp = 8, .pp = 16, .dp = 8, .zero_stage = 1};
    const StepResult ideal = run(c, layout, NetworkMode::ideal), found = flow(c, layout);
    std::vector<double> seconds;
    for (std::size_t s = 0; s < found.stages.size(); ++s)
      seconds.push_back(
          to_seconds(found.stages[s][Label::data_comm] - ideal.stages[s][Label::data_comm]).si());
    return seconds;
  };
  const std::vector<double> whole = delays();
  for (const double seconds : whole) CHECK(seconds > 1e-4);
  // The first stage has the embedding's gradients besides; stages inside are alike.
  CHECK(whole[0] != Approx(whole[5]).epsilon(1e-6));
  CHECK(whole[4] == Approx(whole[5]).epsilon(1e-9));
  CHECK(whole[14] == Approx(whole[5] * 7 / 8).epsilon(0.01));  // seven layers instead of eight
  c.stack.communication.gradient_overlap = false;
  for (const double seconds : delays()) CHECK(std::abs(seconds) < 1e-7);
}

TEST_CASE("law 6 on the flow network: the same step on any number of threads") {
  const Case c = make_case("mixtral-8x7b", "h800-roce", 128, "megatron-core");
  RandomStream random(fresh(6), 2);
  std::vector<Layout> layouts;
  for (int i = 0; i < 24; ++i)
    layouts.push_back(test::random_layout(random, c.model, c.job, c.cluster.gpus));
  std::vector<std::int64_t> alone(layouts.size()), together(layouts.size());
  const auto all = [&](std::vector<std::int64_t>& out, int threads) {
    parallel_for(layouts.size(), threads,
                 [&](std::size_t i) { out[i] = flow(c, layouts[i], what_ifs(c)[3]).step.ps; });
  };
  all(alone, 1);
  all(together, 4);
  CHECK(alone == together);
}

TEST_CASE("broken and busy networks never make a step faster") {
  for (const Case& c : cases()) {
    RandomStream random(fresh(15), 2);
    for (int i = 0; i < 12; ++i) {
      const Layout layout = test::random_layout(random, c.model, c.job, c.cluster.gpus);
      const StepResult healthy = flow(c, layout);
      for (const Conditions& conditions : what_ifs(c)) {
        INFO(c.cluster.name << " " << to_text(layout));
        check_not_faster(flow(c, layout, conditions), healthy);
      }
    }
  }
}

TEST_CASE("a NIC at half rate doubles at most what crosses it, and gradients through it feel it") {
  const Case c = make_case("llama3-8b", "dgx-h100", 64, "megatron-core");
  const Layout layout{.tp = 8, .dp = 8};
  const StepResult healthy = flow(c, layout), broken = flow(c, layout, what_ifs(c)[0]);
  const auto data = [](const StepResult& r) {
    return static_cast<double>(r.stages.front()[Label::data_comm].ps);
  };
  CHECK(data(broken) > 1.3 * data(healthy));
  double sent = 0, took = 0;
  for (std::size_t i = 0; i < broken.network.size(); ++i) {
    const FlowPrice& price = broken.network[i].price;
    if (price.flows == 0) continue;
    CHECK(price.time.time >= price.undisturbed * (1 - 1e-9));
    CHECK(price.time.time <= 2 * price.undisturbed);
    sent += broken.network[i].count;
    took += price.busiest.front().load;
  }
  CHECK(sent > 0);
  CHECK(took > 0);
  // Less of the NIC left, longer.
  Conditions worse = what_ifs(c)[0];
  std::int64_t before = healthy.step.ps;
  for (const double left : {0.8, 0.5, 0.25, 0.1}) {
    worse.faults[0].remaining = left;
    const std::int64_t now = flow(c, layout, worse).step.ps;
    CHECK(now >= before);
    before = now;
  }
}

TEST_CASE("spines and planes that fail cost what they carried") {
  // 512 accelerators, 256 to a leaf group with eight spines; four planes of a quarter each.
  const Case rails = make_case("llama3-8b", "dgx-h100", 512, "megatron-core");
  const Layout wide{.tp = 8, .dp = 64};
  const StepResult open = flow(rails, wide);
  Conditions spine, link;
  for (int i = 0; i < 6; ++i) spine.faults.push_back({.kind = FaultKind::spine, .spine = i});
  link.faults = {{.kind = FaultKind::leaf_spine, .leaf = 0, .spine = 0}};
  check_not_faster(flow(rails, wide, spine), open);
  check_not_faster(flow(rails, wide, link), open);

  const Case planes = make_case("llama3-8b", "gb300-4plane", 128, "megatron-core");
  const Layout across{.tp = 1, .pp = 2, .dp = 64};
  Conditions one;
  one.faults = {{.kind = FaultKind::plane, .plane = 2}};
  Conditions three = one;
  three.faults.push_back({.kind = FaultKind::plane, .plane = 0});
  three.faults.push_back({.kind = FaultKind::plane, .plane = 1});
  const StepResult whole = flow(planes, across), most = flow(planes, across, one),
                   least = flow(planes, across, three);
  check_not_faster(most, whole);
  check_not_faster(least, most);
  CHECK(least.step > whole.step);
}

TEST_CASE("a slow device slows the step by its factor at most, on either network") {
  for (const Case& c : cases()) {
    RandomStream random(fresh(16), 2);
    for (int i = 0; i < 12; ++i) {
      const Layout layout = test::random_layout(random, c.model, c.job, c.cluster.gpus);
      INFO(c.cluster.name << " " << to_text(layout));
      for (const NetworkMode network : {NetworkMode::ideal, NetworkMode::flow}) {
        Conditions slow;
        slow.slow_gpus = {{.gpu = 2, .speed = 0.8}};
        const StepResult before = run(c, layout, network), after = run(c, layout, network, slow);
        check_not_faster(after, before);
        CHECK(static_cast<double>(after.step.ps) <= static_cast<double>(before.step.ps) / 0.8);
      }
    }
  }
}

TEST_CASE("a slow device slows the passes of its own stage and of no other") {
  const Case c = make_case("llama3-8b", "dgx-h100", 64, "megatron-core");
  for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::dual_pipe}) {
    const Layout layout{.tp = 2, .pp = 4, .dp = 8, .schedule = schedule};
    Conditions slow;
    slow.slow_gpus = {{.gpu = 16 * 2 + 5, .speed = 0.5}};  // stages of 16
    const StepResult before = flow(c, layout), after = flow(c, layout, slow);
    for (std::size_t s = 0; s < 4; ++s) {
      INFO("stage " << s);
      const Ticks was = before.stages[s][Label::gemm], is = after.stages[s][Label::gemm];
      if (s == 2)
        CHECK(static_cast<double>(is.ps) > 1.5 * static_cast<double>(was.ps));
      else
        CHECK(is == was);
    }
    CHECK(after.step > before.step);
  }
}

TEST_CASE("spares may be slow: nobody waits for an accelerator without a rank") {
  const Case c = make_case("mixtral-8x7b", "gb200-nvl72", 128, "nemo");
  const Layout layout{.tp = 2, .dp = 64, .ep = 8};
  Conditions slow;
  slow.slow_gpus = {{.gpu = 70, .speed = 0.1}};  // 64 of 72 are in use
  CHECK(flow(c, layout, slow).step == flow(c, layout).step);
  slow.slow_gpus = {{.gpu = 63, .speed = 0.1}};
  CHECK(flow(c, layout, slow).step > flow(c, layout).step);
}

TEST_CASE("inference on the flow network: labels add up, broken ports and NICs cost time") {
  Case c = make_case("llama3-70b", "dgx-h100", 16, "pytorch");
  c.job = {.task = Task::decode, .batch = 32, .context = 2048};
  for (const Layout& layout :
       {Layout{.tp = 8, .pp = 2}, Layout{.tp = 16}, Layout{.tp = 4, .dp = 4}}) {
    INFO(to_text(layout));
    const StepResult ideal = run(c, layout, NetworkMode::ideal), healthy = flow(c, layout);
    CHECK(std::abs(healthy.step.ps - ideal.step.ps) <= rounding);
    for (const Conditions& conditions : what_ifs(c))
      check_not_faster(flow(c, layout, conditions), healthy);
  }
  // Decoding sends too little for bandwidth to matter, a long prompt does not.
  c.job = {.task = Task::prefill, .sequence = 8192, .batch = 4};
  CHECK(flow(c, {.tp = 16}, what_ifs(c)[0]).step > flow(c, {.tp = 16}).step);
  CHECK(flow(c, {.tp = 4, .dp = 4}, what_ifs(c)[1]).step > flow(c, {.tp = 4, .dp = 4}).step);
}

}  // namespace orrery
