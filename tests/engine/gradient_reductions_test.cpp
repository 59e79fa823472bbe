// SPDX-License-Identifier: Apache-2.0
// Holds how often gradients are reduced against what each ZeRO stage keeps of them.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/engine/step/step.h"
#include "tests/engine/step_case.h"

namespace orrery {
namespace {

using test::Case;
using test::make_case;

// Gradients that a step reduces over all ranks, in bytes.
double reduced(const StepResult& r) {
  double bytes = 0;
  for (const NetworkUse& use : r.network)
    if (use.label == Label::data_comm && use.collective.kind == CollectiveKind::reduce_scatter)
      bytes += use.count * use.collective.bytes.si();
  return bytes;
}

StepResult run(const Case& c, const Layout& layout, NetworkMode mode = NetworkMode::ideal) {
  StepContext context = step_context(c.cluster);
  context.network = mode;
  return step(context, c.model, c.job, layout, c.stack);
}

}  // namespace

TEST_CASE("ZeRO-2 reduces the gradients of every microbatch, ZeRO-1 their sum") {
  Case c = make_case("llama3-8b", "dgx-h100", 32, "megatron-core");
  // ZeRO-2 keeps no whole gradients.
  c.stack.kernels.update.gradient_touches.value = 0;
  for (const std::int64_t microbatches : {1, 4, 16}) {
    c.job.global_batch = 32 * microbatches;
    const double once = reduced(run(c, {.dp = 32, .zero_stage = 1}, NetworkMode::flow));
    const double each = reduced(run(c, {.dp = 32, .zero_stage = 2}, NetworkMode::flow));
    CHECK(each == Approx(once * static_cast<double>(microbatches)));
    const StepResult one = run(c, {.dp = 32, .zero_stage = 1}),
                     two = run(c, {.dp = 32, .zero_stage = 2});
    CHECK(two.scale_out_bytes >= one.scale_out_bytes);
    // A stack may launch or overlap otherwise where gradients lie sharded.
    const double more = to_seconds(two.step - one.step) / to_seconds(one.step);
    if (microbatches == 1)
      CHECK(std::abs(more) < 0.01);
    else
      CHECK(more > 0);
  }
}

TEST_CASE("reductions hide under a microbatch's passes unless they take longer", "[law]") {
  Case c = make_case("llama3-8b", "dgx-h100", 64, "megatron-core");
  for (const std::int64_t pp : {1, 4}) {
    const Layout one{.tp = 2, .pp = pp, .dp = 32 / pp, .zero_stage = 1};
    Layout two = one;
    two.zero_stage = 2;
    const auto more = [&](std::int64_t microbatches) {
      c.job.global_batch = one.dp * microbatches;
      return to_seconds(run(c, two).step - run(c, one).step).si();
    };
    const double few = more(2), some = more(8), many = more(32);
    CHECK(few < some);
    // Each further microbatch adds as much, once the pipeline is full.
    CHECK((many - some) / (some - few) == Approx(24.0 / 6).epsilon(0.02));
  }
}

}  // namespace orrery
