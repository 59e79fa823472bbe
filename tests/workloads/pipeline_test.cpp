// SPDX-License-Identifier: Apache-2.0
// Checks the orders of pipeline schedules against their definitions.
#include "workloads/layout/pipeline.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <catch2/catch.hpp>

using namespace orrery;

namespace {

std::vector<PipelineShape> all_shapes() {
  std::vector<PipelineShape> shapes;
  for (std::int64_t stages : {1, 2, 3, 4, 6, 8}) {
    for (std::int64_t m : {1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 18, 24, 31}) {
      for (Schedule schedule :
           {Schedule::gpipe, Schedule::one_f_one_b, Schedule::zero_bubble, Schedule::dual_pipe})
        shapes.push_back({schedule, stages, 1, m});
      for (Schedule schedule : {Schedule::zero_bubble_v, Schedule::dual_pipe_v})
        shapes.push_back({schedule, stages, 2, m});
      for (std::int64_t chunks : {1, 2, 3, 5})
        for (Schedule schedule : {Schedule::interleaved, Schedule::interleaved_zero_bubble})
          shapes.push_back({schedule, stages, chunks, m});
    }
  }
  std::erase_if(shapes, [](const PipelineShape& s) { return invalid_shape(s).has_value(); });
  return shapes;
}

std::string text(const std::vector<Pass>& order) {
  std::string result;
  for (const Pass& pass : order) {
    result += fmt::format("{}{}", "FBIW"[static_cast<int>(pass.kind)], pass.microbatch);
    if (pass.chunk > 0) result += fmt::format(".{}", pass.chunk);
    result += pass.paired ? '+' : ' ';
  }
  if (!result.empty()) result.pop_back();
  return result;
}

}  // namespace

TEST_CASE("every stage runs every pass once, in a possible order") {
  for (const PipelineShape& shape : all_shapes()) {
    const std::int64_t chunks = chunks_per_stage(shape);
    const bool dual = shape.schedule == Schedule::dual_pipe;
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      CAPTURE(static_cast<int>(shape.schedule), shape.stages, shape.chunks, shape.microbatches,
              stage);
      // 1 after the forward, 2 after the input gradient, 3 when all is done.
      std::map<std::pair<std::int64_t, std::int64_t>, int> state;
      for (const Pass& pass : stage_order(shape, stage)) {
        int& at = state[{pass.chunk, pass.microbatch}];
        switch (pass.kind) {
          case PassKind::forward:
            REQUIRE(at == 0);
            at = 1;
            break;
          case PassKind::backward:
            REQUIRE(at == 1);
            at = 3;
            break;
          case PassKind::input_gradient:
            REQUIRE(at == 1);
            at = 2;
            break;
          case PassKind::weight_gradient:
            REQUIRE(at == 2);
            at = 3;
            break;
        }
        if (dual) REQUIRE((pass.microbatch < shape.microbatches / 2) == (pass.chunk == 0));
      }
      REQUIRE(static_cast<std::int64_t>(state.size()) == shape.microbatches * (dual ? 1 : chunks));
      for (const auto& [key, at] : state) REQUIRE(at == 3);
    }
  }
}

TEST_CASE("peak_in_flight is the most that the order holds") {
  for (const PipelineShape& shape : all_shapes()) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      CAPTURE(static_cast<int>(shape.schedule), shape.stages, shape.chunks, shape.microbatches,
              stage);
      const bool held_for_weights =
          splits_backward(shape.schedule) && !pairs_directions(shape.schedule);
      const PassKind release = held_for_weights ? PassKind::weight_gradient : PassKind::backward;
      std::int64_t held = 0, peak = 0;
      for (const Pass& pass : stage_order(shape, stage)) {
        if (pass.kind == PassKind::forward) ++held;
        if (pass.kind == release) --held;
        if (pass.kind == PassKind::input_gradient && release == PassKind::backward) --held;
        peak = std::max(peak, held);
      }
      REQUIRE(peak_in_flight(shape, stage) == peak);
    }
  }
}

TEST_CASE("1F1B and GPipe orders") {
  CHECK(text(stage_order({Schedule::one_f_one_b, 4, 1, 5}, 1)) == "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  CHECK(text(stage_order({Schedule::one_f_one_b, 4, 1, 2}, 0)) == "F0 F1 B0 B1");
  CHECK(text(stage_order({Schedule::gpipe, 4, 1, 3}, 2)) == "F0 F1 F2 B0 B1 B2");
}

TEST_CASE("interleaved order is Megatron-Core's") {
  // Two stages of two chunks: warm-up of (2 - 0 - 1) * 2 + (2 - 1) * 2 = 4 forwards on stage 0.
  CHECK(text(stage_order({Schedule::interleaved, 2, 2, 4}, 0)) ==
        "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3");
  CHECK(text(stage_order({Schedule::interleaved, 2, 2, 4}, 1)) ==
        "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3");
  CHECK(stage_order({Schedule::one_f_one_b, 2, 2, 4}, 0) ==
        stage_order({Schedule::interleaved, 2, 2, 4}, 0));
  for (std::int64_t stage = 0; stage < 8; ++stage) {
    const std::vector<Pass> order = stage_order({Schedule::interleaved, 8, 4, 64}, stage);
    const auto first = std::find_if(order.begin(), order.end(), [](const Pass& pass) {
      return pass.kind != PassKind::forward;
    });
    CHECK(first - order.begin() == (8 - stage - 1) * 2 + 3 * 8 + 1);
  }
}

TEST_CASE("ZB-H1 delays weight gradients by the stage") {
  CHECK(text(stage_order({Schedule::zero_bubble, 3, 1, 4}, 0)) ==
        "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
  CHECK(text(stage_order({Schedule::zero_bubble, 3, 1, 4}, 2)) ==
        "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
}

TEST_CASE("DualPipe order is the published one") {
  // Four stages, eight microbatches: the steps 1 to 8 of the outer stage, then of the middle one.
  CHECK(text(stage_order({Schedule::dual_pipe, 4, 1, 8}, 0)) ==
        "F0 F1 F2 F4.1 I4.1 W4.1 F5.1 F3+B5.1 F6.1+B0 B6.1 F7.1+B1 B7.1 I2 W2 I3 W3");
  CHECK(text(stage_order({Schedule::dual_pipe, 4, 1, 8}, 1)) ==
        "F0 F4.1 F1 F5.1 F2 B4.1 F6.1+B0 F3+B5.1 F7.1+B1 B6.1 B2 I7.1 I3 W7.1 W3");
  // The other half is the mirror image.
  for (std::int64_t stage = 0; stage < 8; ++stage) {
    const std::vector<Pass> order = stage_order({Schedule::dual_pipe, 8, 1, 20}, stage);
    std::vector<Pass> mirror = stage_order({Schedule::dual_pipe, 8, 1, 20}, 7 - stage);
    for (Pass& pass : mirror) {
      pass.chunk = 1 - pass.chunk;
      pass.microbatch = (pass.microbatch + 10) % 20;
    }
    CHECK(order == mirror);
  }
}

TEST_CASE("interleaved zero-bubble order is PyTorch's") {
  // Stage 0 warms up with 4 forwards and is never late with weight gradients; stage 1 with 2, and
  // its weight gradients come one virtual microbatch late.
  CHECK(text(stage_order({Schedule::interleaved_zero_bubble, 2, 2, 4}, 0)) ==
        "F0 F1 F0.1 F1.1 F2 I0.1 W0.1 F3 I1.1 W1.1 F2.1 I0 W0 F3.1 I1 W1 I2.1 W2.1 I3.1 W3.1 I2 W2 "
        "I3 W3");
  CHECK(text(stage_order({Schedule::interleaved_zero_bubble, 2, 2, 4}, 1)) ==
        "F0 F1 F0.1 I0.1 F1.1 I1.1 W0.1 F2 I0 W1.1 F3 I1 W0 F2.1 I2.1 W1 F3.1 I3.1 W2.1 I2 W3.1 I3 "
        "W2 W3");
}

TEST_CASE("ZB-V order is PyTorch's") {
  CHECK(text(stage_order({Schedule::zero_bubble_v, 2, 2, 4}, 0)) ==
        "F0 F1 F2 F0.1 I0.1 W0.1 F1.1 I1.1 W1.1 F3 I0 W0 F2.1 I2.1 W2.1 I1 W1 F3.1 I3.1 W3.1 I2 W2 "
        "I3 W3");
  CHECK(text(stage_order({Schedule::zero_bubble_v, 2, 2, 4}, 1)) ==
        "F0 F0.1 F1 F1.1 I0.1 W0.1 F2 I0 W0 F2.1 I1.1 W1.1 F3 I1 W1 F3.1 I2.1 W2.1 I2 I3.1 I3 W2 "
        "W3.1 W3");
}

TEST_CASE("DualPipeV is the first half of DualPipe over twice the stages") {
  CHECK(text(stage_order({Schedule::dual_pipe_v, 2, 2, 4}, 0)) ==
        "F0 F1 F2 F0.1 I0.1 W0.1 F1.1 F3+B1.1 F2.1+B0 B2.1 F3.1+B1 B3.1 I2 W2 I3 W3");
}

TEST_CASE("a V holds what 1F1B's first stage holds, and the parts of it add up") {
  for (const PipelineShape& shape : all_shapes()) {
    if (!is_v_shaped(shape.schedule) && shape.schedule != Schedule::dual_pipe) continue;
    // Chunks of half a stage: 2 p of them are the p microbatches of 1F1B.
    if (shape.schedule == Schedule::zero_bubble_v)
      CHECK(peak_in_flight(shape, 0) ==
            2 * peak_in_flight({Schedule::one_f_one_b, shape.stages, 1, shape.microbatches}, 0));
    const PassKind release = shape.schedule == Schedule::zero_bubble_v ? PassKind::weight_gradient
                                                                       : PassKind::input_gradient;
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      CAPTURE(static_cast<int>(shape.schedule), shape.stages, shape.microbatches, stage);
      const auto worst = worst_held(shape, stage);
      std::int64_t held[2] = {0, 0};
      for (const Pass& pass : stage_order(shape, stage)) {
        if (pass.kind == PassKind::forward) ++held[pass.chunk];
        if (pass.kind == release || pass.kind == PassKind::backward) --held[pass.chunk];
        // Whatever the chunks weigh, one of the moments is at least as heavy.
        for (const std::int64_t weight : {0, 1, 2, 5, 100}) {
          const auto heavy = [&](std::int64_t a, std::int64_t b) { return a + weight * b; };
          const std::int64_t most = std::max(heavy(worst[0].first, worst[0].second),
                                             heavy(worst[1].first, worst[1].second));
          REQUIRE(heavy(held[0], held[1]) <= most);
        }
      }
      for (const ChunksHeld& w : worst) CHECK(w.first + w.second == peak_in_flight(shape, stage));
    }
  }
}

TEST_CASE("shapes without a schedule are named") {
  CHECK(invalid_shape({Schedule::zero_bubble_v, 4, 1, 8}));
  CHECK(invalid_shape({Schedule::dual_pipe_v, 4, 2, 7}));
  CHECK(invalid_shape({Schedule::zero_bubble_v, 1, 2, 8}));
  CHECK(invalid_shape({Schedule::gpipe, 4, 2, 8}));
  CHECK(invalid_shape({Schedule::zero_bubble, 4, 2, 8}));
  CHECK(invalid_shape({Schedule::dual_pipe, 3, 1, 8}));
  CHECK(invalid_shape({Schedule::dual_pipe, 4, 1, 9}));
  CHECK(invalid_shape({Schedule::dual_pipe, 4, 1, 6}));
  CHECK(invalid_shape({Schedule::one_f_one_b, 4, 1, 0}));
  CHECK_FALSE(invalid_shape({Schedule::interleaved, 4, 2, 9}));
  CHECK(invalid_shape({Schedule::interleaved_zero_bubble, 4, 2, 9}));
  CHECK_FALSE(invalid_shape({Schedule::dual_pipe, 4, 1, 8}));
}
