// SPDX-License-Identifier: Apache-2.0
// Holds a step to waiting for the slowest of its boards.
#include <catch2/catch.hpp>

#include "hw_models/boards.h"
#include "sim/engine/step/step.h"
#include "tests/engine/step_case.h"

using namespace orrery;
using test::Case;
using test::make_case;

TEST_CASE("a step waits for the slowest of its boards, whatever limits them") {
  const Case c = make_case("llama3-8b", "dgx-h100", 64, "megatron-core");
  StepContext context = step_context(c.cluster);
  REQUIRE(context.device.board_spread > 0);
  Layout layout;
  layout.dp = 64;
  const auto seconds = [&](double spread) {
    context.device.board_spread = spread;
    return to_seconds(step(context, c.model, c.job, layout, c.stack).step).si();
  };
  const double equal = seconds(0);
  const double spread = 0.02;
  const double whole = equal / slowest_board(spread, 64);
  // Compute slows by the whole, what memory and the network bound does not.
  CHECK(seconds(spread) > equal * (1 + 0.5 * (whole / equal - 1)));
  CHECK(seconds(spread) <= whole * 1.0001);
}
