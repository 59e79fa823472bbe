// SPDX-License-Identifier: Apache-2.0
// Holds what hidden messages between stages cost to a sum by hand.
#include <catch2/catch.hpp>

#include "sim/engine/step/chunks.h"
#include "sim/engine/step/pipeline.h"
#include "sim/engine/step/step.h"
#include "tests/engine/step_case.h"

namespace orrery {

TEST_CASE("a message that no stage waits for costs the passes beside it") {
  test::Case c = test::make_case("llama3-8b", "dgx-h100", 32, "megatron-core");
  c.stack.communication.interleaved_sends_block = false;
  const StepContext context = step_context(c.cluster);
  // Nothing else is hidden: no data, context or expert parallelism.
  const Layout layout{.tp = 8, .pp = 4, .vpp = 2, .schedule = Schedule::interleaved};
  const auto seconds_at = [&](double cost) {
    c.stack.communication.overlap_cost.value = cost;
    return to_seconds(step(context, c.model, c.job, layout, c.stack).step).si();
  };
  const StepPipeline p = step_pipeline(context, c.model, c.job, layout, c.stack);
  REQUIRE_FALSE(p.costs.sends_block);
  // The last stage, which has the loss, paces the step: its first chunk sends on and back, the
  // other back only.
  const ChunkCost &first = p.costs.chunk[6], &last = p.costs.chunk[7];
  REQUIRE(last.send_forward == Ticks{});
  const Ticks sent = first.send_forward + first.send_backward + last.send_backward;
  const double messages = to_seconds(sent).si() * static_cast<double>(layout.microbatches(c.job));
  REQUIRE(messages > 0);
  const double none = seconds_at(0), half = seconds_at(0.5);
  CHECK(half - none > 0.5 * messages * 0.98);
  CHECK(half - none < 0.5 * messages * 1.1);
  CHECK(seconds_at(1) - half == Approx(half - none).epsilon(0.05));

  // Where stages wait for their messages, nothing runs beside them.
  c.stack.communication.interleaved_sends_block = true;
  CHECK(seconds_at(1) == seconds_at(0));
}

}  // namespace orrery
