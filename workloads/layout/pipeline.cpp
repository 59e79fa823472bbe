// SPDX-License-Identifier: Apache-2.0
// Knows pipeline schedules: the fixed order of passes on every stage.
#include "workloads/layout/pipeline.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

void add(std::vector<Pass>& order, PassKind kind, std::int64_t chunk, std::int64_t microbatch,
         bool paired = false) {
  order.push_back({kind, static_cast<std::int32_t>(chunk), microbatch, paired});
}

std::vector<Pass> gpipe_order(const PipelineShape& shape) {
  std::vector<Pass> order;
  order.reserve(static_cast<std::size_t>(2 * shape.microbatches));
  for (std::int64_t i = 0; i < shape.microbatches; ++i) add(order, PassKind::forward, 0, i);
  for (std::int64_t i = 0; i < shape.microbatches; ++i) add(order, PassKind::backward, 0, i);
  return order;
}

std::vector<Pass> one_f_one_b_order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t m = shape.microbatches;
  const std::int64_t warm_up = std::min(shape.stages - stage - 1, m);
  std::vector<Pass> order;
  order.reserve(static_cast<std::size_t>(2 * m));
  for (std::int64_t i = 0; i < warm_up; ++i) add(order, PassKind::forward, 0, i);
  for (std::int64_t i = 0; i < m; ++i) {
    if (warm_up + i < m) add(order, PassKind::forward, 0, warm_up + i);
    add(order, PassKind::backward, 0, i);
  }
  return order;
}

// The weight gradient of microbatch j follows the input gradient of microbatch j + stage; the last
// `stage` of them fill the tail that 1F1B leaves idle.
std::vector<Pass> zero_bubble_order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t m = shape.microbatches;
  const std::int64_t warm_up = std::min(shape.stages - stage - 1, m);
  std::vector<Pass> order;
  order.reserve(static_cast<std::size_t>(3 * m));
  for (std::int64_t i = 0; i < warm_up; ++i) add(order, PassKind::forward, 0, i);
  for (std::int64_t i = 0; i < m; ++i) {
    if (warm_up + i < m) add(order, PassKind::forward, 0, warm_up + i);
    add(order, PassKind::input_gradient, 0, i);
    if (i >= stage) add(order, PassKind::weight_gradient, 0, i - stage);
  }
  for (std::int64_t i = std::max<std::int64_t>(m - stage, 0); i < m; ++i)
    add(order, PassKind::weight_gradient, 0, i);
  return order;
}

// Virtual microbatches run over `stages` microbatches of one chunk, then of the next; a group is
// all chunks of `stages` microbatches. Backwards visit the chunks from the last to the first.
void add_virtual(std::vector<Pass>& order, const PipelineShape& shape, PassKind kind,
                 std::int64_t index) {
  const std::int64_t run = index / shape.stages;
  const std::int64_t microbatch = run / shape.chunks * shape.stages + index % shape.stages;
  if (microbatch >= shape.microbatches) return;  // missing in a short last group
  const std::int64_t chunk = run % shape.chunks;
  add(order, kind, kind == PassKind::forward ? chunk : shape.chunks - 1 - chunk, microbatch);
}

std::int64_t interleaved_warm_up(const PipelineShape& shape, std::int64_t stage) {
  return (shape.stages - stage - 1) * 2 + (shape.chunks - 1) * shape.stages;
}

std::vector<Pass> interleaved_order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t groups = (shape.microbatches + shape.stages - 1) / shape.stages;
  const std::int64_t total = groups * shape.stages * shape.chunks;
  const std::int64_t warm_up = std::min(interleaved_warm_up(shape, stage), total);
  std::vector<Pass> order;
  order.reserve(static_cast<std::size_t>(2 * shape.microbatches * shape.chunks));
  for (std::int64_t i = 0; i < warm_up; ++i) add_virtual(order, shape, PassKind::forward, i);
  for (std::int64_t i = 0; i < total; ++i) {
    if (warm_up + i < total) add_virtual(order, shape, PassKind::forward, warm_up + i);
    add_virtual(order, shape, PassKind::backward, i);
  }
  return order;
}

// DeepSeek numbers the directions of a stage by nearness of their entry: phase 0 enters at the
// stage's own half. Weight gradients leave a first-in first-out queue.
class DualPipeOrder {
 public:
  DualPipeOrder(const PipelineShape& shape, std::int64_t stage)
      : second_half_(stage >= shape.stages / 2), half_(shape.microbatches / 2) {
    order.reserve(static_cast<std::size_t>(2 * shape.microbatches + shape.stages));
  }
  void forward(int phase, bool paired = false) {
    const std::int64_t chunk = chunk_of(phase);
    add(order, PassKind::forward, chunk, chunk * half_ + forwards_[index(phase)]++, paired);
  }
  void backward(int phase, bool split = false) {
    const std::int64_t chunk = chunk_of(phase);
    const std::int64_t microbatch = chunk * half_ + backwards_[index(phase)]++;
    add(order, split ? PassKind::input_gradient : PassKind::backward, chunk, microbatch);
    if (split) late_.push_back(order.back());
  }
  void weight() {
    const Pass& late = late_[next_late_++];
    add(order, PassKind::weight_gradient, late.chunk, late.microbatch);
  }
  void pair(int phase) {  // the forward of a phase together with the backward of the other
    forward(phase, true);
    backward(1 - phase);
  }
  std::vector<Pass> order;

 private:
  static std::size_t index(int phase) { return static_cast<std::size_t>(phase); }
  std::int64_t chunk_of(int phase) const { return second_half_ ? 1 - phase : phase; }
  bool second_half_;
  std::int64_t half_;
  std::array<std::int64_t, 2> forwards_{}, backwards_{};
  std::vector<Pass> late_;
  std::size_t next_late_ = 0;
};

// The eight steps of the published implementation, under its own names: nF0 is n forwards of phase
// 0, B1 a backward of phase 1, W a late weight gradient, and a pair runs together.
std::vector<Pass> dual_pipe_order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t rank = std::min(stage, shape.stages - 1 - stage);
  const std::int64_t outer = shape.stages / 2 - rank - 1;  // stages between this one and the middle
  const std::int64_t inner = rank + 1;
  DualPipeOrder o(shape, stage);
  for (std::int64_t i = 0; i < 2 * outer; ++i) o.forward(0);  // 1: nF0
  for (std::int64_t i = 0; i < inner; ++i) {                  // 2: nF0F1
    o.forward(0);
    o.forward(1);
  }
  for (std::int64_t i = 0; i < outer; ++i) {  // 3: nB1W1F1
    o.backward(1, true);
    o.weight();
    o.forward(1);
  }
  const std::int64_t main = shape.microbatches / 2 - shape.stages + inner;
  for (std::int64_t i = 0; i < main; ++i) {  // 4: nF0B1F1B0
    if (i == 0 && outer == 0) {              // the middle stages do not overlap their first two
      o.forward(0);
      o.backward(1);
    } else {
      o.pair(0);
    }
    o.pair(1);
  }
  for (std::int64_t i = 0; i < outer; ++i) {  // 5: nB1F1B0
    o.backward(1);
    o.pair(1);
  }
  for (std::int64_t i = 0; i < inner; ++i) {  // 6: nB1B0, the second half of them split
    const bool late = i >= inner / 2;
    o.backward(1, late && (rank % 2 == 1 || i > inner / 2));
    o.backward(0, late);
  }
  for (std::int64_t i = 0; i < outer; ++i) {  // 7: nWB0
    o.weight();
    o.backward(0, true);
  }
  for (std::int64_t i = 0; i < inner; ++i) o.weight();  // 8: nW
  return o.order;
}

// PyTorch's ScheduleZBVZeroBubble, which is the hand-made ZB-V of Qi et al. for passes of equal
// length: forwards of both chunks fill the stage, then each forward is paid for by a whole backward
// of the same microbatch's chunk, and input gradients run ahead of weight gradients at the end.
std::vector<Pass> zero_bubble_v_order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages, m = shape.microbatches;
  std::array<std::int64_t, 2> forwards{}, inputs{}, weights{};
  std::vector<Pass> order;
  order.reserve(static_cast<std::size_t>(6 * m));
  const auto pass = [&](PassKind kind, std::array<std::int64_t, 2>& next, std::int64_t chunk) {
    add(order, kind, chunk, next[static_cast<std::size_t>(chunk)]++);
  };
  const auto forward = [&](std::int64_t chunk) { pass(PassKind::forward, forwards, chunk); };
  const auto input = [&](std::int64_t chunk) { pass(PassKind::input_gradient, inputs, chunk); };
  const auto weight = [&](std::int64_t chunk) { pass(PassKind::weight_gradient, weights, chunk); };
  const auto backward = [&](std::int64_t chunk) {
    input(chunk);
    weight(chunk);
  };
  for (std::int64_t i = 0; i < 2 * (p - stage) - 1; ++i) forward(0);
  for (std::int64_t i = 0; i < stage; ++i) {
    forward(1);
    forward(0);
  }
  for (std::int64_t i = 0; i < p - stage; ++i) {
    forward(1);
    backward(1);
  }
  while (forwards[1] < forwards[0] || forwards[0] < m) {
    if (forwards[0] < m) forward(0);
    backward(0);
    forward(1);
    backward(1);
  }
  for (std::int64_t i = 0; i < stage; ++i) {
    input(0);
    input(1);
  }
  for (std::int64_t i = 0; i < p - stage; ++i) {
    input(0);
    weight(0);
  }
  while (weights[1] < inputs[1]) weight(1);
  while (weights[0] < inputs[0]) weight(0);
  return order;
}

// DualPipe over twice the stages and microbatches, folded at its middle: a stage does what the
// first half does, and the second direction's microbatches are the first direction's on their way
// back.
std::vector<Pass> dual_pipe_v_order(const PipelineShape& shape, std::int64_t stage) {
  const PipelineShape whole{Schedule::dual_pipe, 2 * shape.stages, 1, 2 * shape.microbatches};
  std::vector<Pass> order = dual_pipe_order(whole, stage);
  for (Pass& pass : order)
    if (pass.chunk == 1) pass.microbatch -= shape.microbatches;
  return order;
}

// Passes that exist among the first `count` virtual microbatches: all but the missing ones of a
// short last group.
std::int64_t existing(const PipelineShape& shape, std::int64_t count) {
  const std::int64_t full = shape.microbatches / shape.stages * shape.stages * shape.chunks;
  if (count <= full) return count;
  const std::int64_t width = shape.microbatches % shape.stages;
  const std::int64_t runs = std::min((count - full) / shape.stages, shape.chunks);
  const std::int64_t rest = runs == shape.chunks ? 0 : (count - full) % shape.stages;
  return full + runs * width + std::min(rest, width);
}

// After forward k of a stage with w warm-up forwards, k - w backwards are done: the greatest
// difference is at the end of the full groups or, with a short one, at the end of one of its runs.
std::int64_t interleaved_peak(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t warm_up = interleaved_warm_up(shape, stage);
  const std::int64_t full = shape.microbatches / shape.stages * shape.stages * shape.chunks;
  const std::int64_t width = shape.microbatches % shape.stages;
  std::int64_t peak = std::min(warm_up + 1, full);
  for (std::int64_t run = 0; width > 0 && run < shape.chunks; ++run) {
    const std::int64_t last = full + run * shape.stages + width - 1;
    const std::int64_t done = std::max<std::int64_t>(last - warm_up, 0);
    peak = std::max(peak, existing(shape, last + 1) - existing(shape, done));
  }
  return peak;
}

}  // namespace

Schedule effective_schedule(const PipelineShape& shape) {
  if (shape.schedule == Schedule::one_f_one_b && shape.chunks > 1) return Schedule::interleaved;
  if (shape.schedule == Schedule::interleaved && shape.chunks == 1) return Schedule::one_f_one_b;
  return shape.schedule;
}

std::int64_t chunks_per_stage(const PipelineShape& shape) {
  return shape.schedule == Schedule::dual_pipe ? 2 : shape.chunks;
}

std::optional<std::string> invalid_shape(const PipelineShape& shape) {
  if (shape.stages < 1 || shape.chunks < 1 || shape.microbatches < 1)
    return fmt::format("a pipeline of {} stages, {} chunks and {} microbatches has nothing to run",
                       shape.stages, shape.chunks, shape.microbatches);
  switch (effective_schedule(shape)) {
    case Schedule::gpipe:
    case Schedule::zero_bubble:
      if (shape.chunks == 1) return std::nullopt;
      return fmt::format("schedule {} has one chunk per stage, not {}",
                         shape.schedule == Schedule::gpipe ? "gpipe" : "zero-bubble", shape.chunks);
    case Schedule::dual_pipe:
      if (shape.chunks > 2)
        return fmt::format("schedule dual-pipe has one chunk per direction, not {} chunks",
                           shape.chunks);
      if (shape.stages % 2 != 0)
        return fmt::format("schedule dual-pipe needs an even number of stages, not {}",
                           shape.stages);
      if (shape.microbatches % 2 != 0 || shape.microbatches < 2 * shape.stages)
        return fmt::format(
            "schedule dual-pipe needs an even number of microbatches, at least "
            "twice the {} stages, not {}",
            shape.stages, shape.microbatches);
      return std::nullopt;
    case Schedule::zero_bubble_v:
    case Schedule::dual_pipe_v:
      if (shape.chunks != 2 || shape.stages < 2 || shape.microbatches < 2 * shape.stages)
        return fmt::format(
            "a V-shaped schedule needs two chunks, two stages and twice as many microbatches as "
            "stages at least, not {} chunks, {} stages and {} microbatches",
            shape.chunks, shape.stages, shape.microbatches);
      return std::nullopt;
    case Schedule::one_f_one_b:
    case Schedule::interleaved:
      break;
  }
  return std::nullopt;
}

std::vector<Pass> stage_order(const PipelineShape& shape, std::int64_t stage) {
  CHECK_THAT(!invalid_shape(shape), *invalid_shape(shape));
  CHECK_THAT(stage >= 0 && stage < shape.stages, "stage outside the pipeline");
  switch (effective_schedule(shape)) {
    case Schedule::gpipe:
      return gpipe_order(shape);
    case Schedule::one_f_one_b:
      return one_f_one_b_order(shape, stage);
    case Schedule::interleaved:
      return interleaved_order(shape, stage);
    case Schedule::zero_bubble:
      return zero_bubble_order(shape, stage);
    case Schedule::dual_pipe:
      return dual_pipe_order(shape, stage);
    case Schedule::zero_bubble_v:
      return zero_bubble_v_order(shape, stage);
    case Schedule::dual_pipe_v:
      return dual_pipe_v_order(shape, stage);
  }
  check_failed("schedule", __FILE__, __LINE__, "unknown schedule");
}

// DualPipe counted from its nearer end: 2 * outer + inner forwards of its own direction and inner
// of the other wait, and one more runs in a pair, of either direction.
std::array<ChunksHeld, 2> worst_held(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages;
  if (shape.schedule == Schedule::zero_bubble_v)
    return {ChunksHeld{2 * p - stage - 1, stage + 1}, ChunksHeld{2 * p - stage, stage}};
  const bool folded = shape.schedule == Schedule::dual_pipe_v;
  CHECK_THAT(folded || shape.schedule == Schedule::dual_pipe, "a schedule of two chunks");
  const std::int64_t rank = folded ? stage : std::min(stage, p - 1 - stage);
  const std::int64_t outer = (folded ? p : p / 2) - rank - 1, inner = rank + 1;
  const ChunksHeld held{2 * outer + inner + 1, inner};
  const ChunksHeld turned{held.second, held.first};
  const ChunksHeld& own = folded || stage < p / 2 ? held : turned;
  return {own, own};
}

std::int64_t peak_in_flight(const PipelineShape& shape, std::int64_t stage) {
  CHECK_THAT(!invalid_shape(shape), *invalid_shape(shape));
  switch (effective_schedule(shape)) {
    case Schedule::gpipe:
      return shape.microbatches;
    case Schedule::one_f_one_b:
      return std::min(shape.stages - stage, shape.microbatches);
    case Schedule::interleaved:
      return interleaved_peak(shape, stage);
    case Schedule::zero_bubble:
      return std::min(shape.stages, shape.microbatches);
    case Schedule::dual_pipe:
      return shape.stages + 1;
    case Schedule::zero_bubble_v:
      return 2 * shape.stages;
    case Schedule::dual_pipe_v:
      return 2 * shape.stages + 1;
  }
  check_failed("schedule", __FILE__, __LINE__, "unknown schedule");
}

}  // namespace orrery
