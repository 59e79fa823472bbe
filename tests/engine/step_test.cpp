// SPDX-License-Identifier: Apache-2.0
// Holds the executor to its laws: labels add up, more hardware is never slower, same inputs same
// step.
#include <catch2/catch.hpp>

#include "sim/base/parallel.h"
#include "sim/engine/step/step.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/step_case.h"

using namespace orrery;

namespace {

using test::Case;
using test::make_case;

std::vector<Case> cases() {
  return {make_case("llama3-8b", "dgx-h100", 64, "megatron-core"),
          make_case("mixtral-8x7b", "gb200-nvl72", 128, "nemo"),
          make_case("gpt3-175b", "dgx-a100", 128, "megatron-deepspeed")};
}

}  // namespace

TEST_CASE("law 13: the labels of every stage sum to the step") {
  for (const Case& c : cases()) {
    const StepContext context = step_context(c.cluster);
    RandomStream random(fresh(13), 1);
    for (int i = 0; i < 60; ++i) {
      const Layout layout = test::random_layout(random, c.model, c.job, c.cluster.gpus);
      const StepResult result = step(context, c.model, c.job, layout, c.stack);
      INFO(to_text(layout));
      REQUIRE(result.step.ps > 0);
      REQUIRE(result.stages.size() == static_cast<std::size_t>(layout.pp));
      for (const StageBreakdown& stage : result.stages) {
        CHECK(stage.total() == result.step);
        for (Ticks t : stage.label) CHECK(t.ps >= 0);
      }
    }
  }
}

TEST_CASE("law 7: more FLOP/s, more bandwidth or less latency is never slower") {
  for (const Case& c : cases()) {
    const StepContext base = step_context(c.cluster);
    RandomStream random(fresh(7), 1);
    for (int i = 0; i < 25; ++i) {
      const Layout layout = test::random_layout(random, c.model, c.job, c.cluster.gpus);
      INFO(to_text(layout));
      const Ticks before = step(base, c.model, c.job, layout, c.stack).step;
      const double factor = 1 + random.uniform();

      StepContext faster = base;
      for (FlopPerSecond& rate : faster.device.tensor_rate) rate *= factor;
      CHECK(step(faster, c.model, c.job, layout, c.stack).step.ps <= before.ps);
      StepContext streaming = base;
      streaming.device.memory_bandwidth *= factor;
      CHECK(step(streaming, c.model, c.job, layout, c.stack).step.ps <= before.ps);
      Fabric fabric = c.cluster.fabric;
      fabric.scale_up.bandwidth.value = fabric.scale_up.bandwidth.get() * factor;
      fabric.scale_out.nic_bandwidth.value = fabric.scale_out.nic_bandwidth.get() * factor;
      fabric.scale_out.nic_latency.value = fabric.scale_out.nic_latency.get() / factor;
      const StepContext wider{.fabric = fabric,
                              .collective_costs = base.collective_costs,
                              .device = base.device,
                              .calibration = base.calibration,
                              .clock_factor = base.clock_factor};
      CHECK(step(wider, c.model, c.job, layout, c.stack).step.ps <= before.ps);
    }
  }
}

TEST_CASE("law 6: the same step on any number of threads") {
  const Case c = make_case("llama3-8b", "dgx-h100", 64, "megatron-core");
  const StepContext context = step_context(c.cluster);
  RandomStream random(fresh(6), 1);
  std::vector<Layout> layouts;
  for (int i = 0; i < 64; ++i)
    layouts.push_back(test::random_layout(random, c.model, c.job, c.cluster.gpus));
  std::vector<std::int64_t> alone(layouts.size()), together(layouts.size());
  const auto run = [&](std::vector<std::int64_t>& out, int threads) {
    parallel_for(layouts.size(), threads, [&](std::size_t i) {
      out[i] = step(context, c.model, c.job, layouts[i], c.stack).step.ps;
    });
  };
  run(alone, 1);
  run(together, 4);
  CHECK(alone == together);
}

TEST_CASE("an offloaded update takes the host's memory as long as its states pass through it") {
  Case c = make_case("llama3-8b", "dgx-h100", 8, "megatron-core");
  const StepContext context = step_context(c.cluster);
  Layout layout{.tp = 2, .dp = 4, .offload_optimizer = true};
  const auto at = [&](double share) {
    c.stack.host.update_share.value = share;
    return 1e-12 * static_cast<double>(step(context, c.model, c.job, layout, c.stack).step.ps);
  };
  // Gradient, master and both moments read, these and the 16-bit parameter written: 30 B.
  const double states = 30 * static_cast<double>(count_parameters(c.model).total) / 8;
  const double bandwidth = context.host_memory_bandwidth.si();
  CHECK(at(0.1) - at(0.2) == Approx(5 * states / bandwidth).epsilon(0.01));
  CHECK(at(0.05) - at(0.1) == Approx(10 * states / bandwidth).epsilon(0.01));
  // Of half of the states half as long.
  const double whole = at(0.1), twice = at(0.05);
  layout.optimizer_offload_fraction = 0.5;
  CHECK(at(0.05) - at(0.1) == Approx((twice - whole) / 2).epsilon(0.01));
  // The catalogue's share: a DGX H100 updates 6 to 12 billion parameters a second.
  const Stack own = make_case("llama3-8b", "dgx-h100", 8, "megatron-core").stack;
  const double rate = 8 * bandwidth * own.host.update_share.get() / 30;
  CHECK(rate > 6e9);
  CHECK(rate < 12e9);
}

TEST_CASE("an inference step passes the stages one after the other") {
  Case c = make_case("llama3-70b", "dgx-h100", 8, "pytorch");
  c.job = {.task = Task::decode, .batch = 32, .context = 2048};
  c.stack.host.launch =
      LaunchMode::full_graph;  // eager, the host decides and the length does not show
  const StepContext context = step_context(c.cluster);
  const StepResult wide = step(context, c.model, c.job, {.tp = 8}, c.stack);
  const StepResult deep = step(context, c.model, c.job, {.tp = 4, .pp = 2}, c.stack);
  CHECK(wide.step < deep.step);  // half the bandwidth reads each weight
  for (const StageBreakdown& stage : deep.stages) CHECK(stage.total() == deep.step);
  c.job.context = 32768;
  CHECK(step(context, c.model, c.job, {.tp = 8}, c.stack).step > wide.step);
}
