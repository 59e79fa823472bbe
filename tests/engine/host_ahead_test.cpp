// SPDX-License-Identifier: Apache-2.0
// Tests hosts that dispatch ahead of their pipeline, and debug wrappers around collectives.
#include <catch2/catch.hpp>

#include <cmath>

#include "sim/engine/step/segment_time.h"
#include "sim/engine/step/step.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/step_case.h"

using namespace orrery;

namespace {

using test::Case;
using test::make_case;

Sourced<Seconds> taking(double value) {
  return {.value = Seconds(value), .evidence = Evidence::assumed, .source = "a test"};
}

Case sweep_case() { return make_case("llama3-8b", "dgx-h100", 64, "nanotron"); }

// One layer a stage and little else to do for the device: the host decides.
struct Slow {
  Case c = sweep_case();
  Layout layout;
  Slow() {
    layout.pp = 8;
    layout.dp = 8;
    layout.schedule = Schedule::one_f_one_b;
    c.stack.host.dispatch = taking(1e-3);
  }
  double step_seconds(bool ahead) {
    c.stack.host.runs_ahead = ahead;
    const StepContext context = step_context(c.cluster);
    return to_seconds(step(context, c.model, c.job, layout, c.stack).step).si();
  }
};

}  // namespace

TEST_CASE("hosts that run ahead are never slower than hosts that wait, and labels still add up") {
  const Case c = sweep_case();
  const StepContext context = step_context(c.cluster);
  RandomStream random(fresh(17), 1);
  for (int i = 0; i < 80; ++i) {
    const Layout layout = test::random_layout(random, c.model, c.job, c.cluster.gpus);
    INFO(to_text(layout));
    Stack stack = c.stack;
    stack.host.dispatch = taking(1e-6 * std::exp(8 * random.uniform()));
    stack.host.runs_ahead = true;
    const StepResult ahead = step(context, c.model, c.job, layout, stack);
    for (const StageBreakdown& stage : ahead.stages) {
      CHECK(stage.total() == ahead.step);
      for (Ticks t : stage.label) CHECK(t.ps >= 0);
    }
    stack.host.runs_ahead = false;
    CHECK(ahead.step.ps <= step(context, c.model, c.job, layout, stack).step.ps);
  }
}

TEST_CASE("where the host decides, a pipeline's fill waits for no host that ran ahead") {
  Slow slow;
  const double waits = slow.step_seconds(false), ahead = slow.step_seconds(true);
  const auto microbatches = static_cast<double>(slow.layout.microbatches(slow.c.job));
  // Waiting hosts dispatch a pass after the other along the pipeline, p - 1 more than m.
  const double fill = (microbatches + 7) / microbatches;
  CHECK(waits / ahead > 1 + 0.7 * (fill - 1));
  slow.c.job.global_batch *= 64;
  CHECK(slow.step_seconds(false) / slow.step_seconds(true) < 1.02);
}

TEST_CASE("what a collective waits for its ranks lengthens the step, once for each of them") {
  Case c = make_case("llama3-8b", "dgx-h100", 8, "nanotron");
  c.stack.host.dispatch = taking(0);
  c.stack.host.debug.per_rank = taking(0);
  Layout layout;
  layout.tp = 8;
  layout.sequence_parallel = false;
  const StepContext context = step_context(c.cluster);
  const auto seconds = [&](double wait) {
    c.stack.host.rank_wait = taking(wait);
    return to_seconds(step(context, c.model, c.job, layout, c.stack).step).si();
  };
  // Four all-reduces a layer and one of the head, for three doublings of a rank.
  const double collectives = static_cast<double>(layout.microbatches(c.job)) * (32 * 4 + 1);
  CHECK(seconds(1e-3) - seconds(0) == Approx(collectives * 3e-3).epsilon(0.01));
}

TEST_CASE("a debug wrapper costs by the ranks of a group, more for those on other hosts") {
  const DebugCalls calls{.per_rank = Seconds(1e-4), .per_remote_rank = Seconds(3e-4)};
  CHECK(calls.of({.size = 8, .per_domain = 8}).si() == Approx(8e-4));
  CHECK(calls.of({.size = 16, .per_domain = 8, .domains = 2}).si() == Approx(8e-4 + 24e-4));

  const Case c = sweep_case();
  const StepContext context = step_context(c.cluster);
  const auto time = [&](const Stack& stack, std::int64_t tp, int zero) {
    Layout layout;
    layout.tp = tp;
    layout.dp = c.cluster.gpus / tp;
    layout.zero_stage = zero;
    return step(context, c.model, c.job, layout, stack).step;
  };
  Stack stack = c.stack;
  for (const int zero : {0, 1}) {
    const Ticks plain = time(stack, 8, zero);
    stack.host.debug.per_rank = taking(1e-3);
    const Ticks debugged = time(stack, 8, zero);
    CHECK(debugged > plain);
    stack.host.debug.slow_hosts.value = 0.5;
    stack.host.debug.slow_cost.value = 0.5;
    CHECK(time(stack, 8, zero) > debugged);
    stack = c.stack;
  }
  stack.host.debug.per_rank = taking(1e-3);
  const Ticks inside = time(stack, 8, 1), across = time(stack, 16, 1);
  stack.host.debug.per_remote_rank = taking(1e-3);
  CHECK(time(stack, 16, 1) - across > time(stack, 8, 1) - inside);
}

TEST_CASE("without shards gradients go by buckets, with shards by one call") {
  const Case c = sweep_case();
  const StepContext context = step_context(c.cluster);
  Layout layout;
  layout.dp = 64;
  const auto cost_of_debug = [&](int zero) {
    layout.zero_stage = zero;
    Stack stack = c.stack;
    const Ticks plain = step(context, c.model, c.job, layout, stack).step;
    stack.host.debug.per_rank = taking(10e-3);
    return to_seconds(step(context, c.model, c.job, layout, stack).step - plain).si();
  };
  // Each of 64 ranks: the mean loss and a barrier; gradients and parameters in a call each; or as
  // many calls as there are buckets of 400 MB in 8e9 fp32 gradients.
  CHECK(cost_of_debug(1) == Approx((2 + 2) * 64 * 10e-3).epsilon(0.01));
  CHECK(cost_of_debug(0) > 40 * 64 * 10e-3);
}
