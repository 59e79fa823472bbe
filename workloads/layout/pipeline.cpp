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

// After so many forwards each forward goes with a backward. Where backwards are split, the weight
// gradient of each follows `stage` virtual microbatches later; the last `stage` of them fill the
// tail that the schedule leaves idle otherwise.
std::vector<Pass> alternating_order(const PipelineShape& shape, std::int64_t stage,
                                    std::int64_t warm_up) {
  const bool split = splits_backward(shape.schedule);
  const std::int64_t groups = (shape.microbatches + shape.stages - 1) / shape.stages;
  const std::int64_t total = groups * shape.stages * shape.chunks;
  std::vector<Pass> order;
  order.reserve(static_cast<std::size_t>((split ? 3 : 2) * total));
  for (std::int64_t i = 0; i < std::min(warm_up, total); ++i)
    add_virtual(order, shape, PassKind::forward, i);
  for (std::int64_t i = 0; i < total + (split ? stage : 0); ++i) {
    if (warm_up + i < total) add_virtual(order, shape, PassKind::forward, warm_up + i);
    if (i < total)
      add_virtual(order, shape, split ? PassKind::input_gradient : PassKind::backward, i);
    if (split && i >= stage) add_virtual(order, shape, PassKind::weight_gradient, i - stage);
  }
  return order;
}
std::vector<Pass> plain_order(const PipelineShape& shape, std::int64_t stage) {
  return alternating_order(shape, stage, shape.stages - stage - 1);
}
std::vector<Pass> interleaved_order(const PipelineShape& shape, std::int64_t stage) {
  return alternating_order(shape, stage, interleaved_warm_up(shape, stage));
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

// Most input gradients that wait for their weight gradient come on top.
std::int64_t interleaved_zero_bubble_peak(const PipelineShape& shape, std::int64_t stage) {
  return std::min(interleaved_warm_up(shape, stage) + stage + 1, shape.microbatches * shape.chunks);
}

// What the functions below say of one schedule.
struct ScheduleRules {
  std::vector<Pass> (*order)(const PipelineShape& shape, std::int64_t stage);
  std::int64_t (*peak)(const PipelineShape& shape, std::int64_t stage);
  // Microbatches, not limited to those of the step, whose outputs of a chunk's head wait for their
  // backward on a stage with `behind` stages after it.
  std::int64_t (*heads)(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk);
};

std::int64_t behind(const PipelineShape& shape, std::int64_t stage) {
  return shape.stages - 1 - stage;
}
std::int64_t plain_heads(const PipelineShape& shape, std::int64_t stage, std::int64_t) {
  return behind(shape, stage) + 1;
}
std::int64_t interleaved_heads(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk) {
  return 2 * behind(shape, stage) + 1 + 2 * (shape.chunks - 1 - chunk) * shape.stages;
}
// The first stage's second chunk turns around at once.
std::int64_t v_heads(const PipelineShape& shape, std::int64_t stage, std::int64_t) {
  return stage == 0 ? 1 : 2 * shape.stages + 1;
}

// One row for each schedule, in the order of the enumerators.
constexpr auto schedule_rules = std::to_array<ScheduleRules>({
    {[](const PipelineShape& shape, std::int64_t) { return gpipe_order(shape); },
     [](const PipelineShape& shape, std::int64_t) { return shape.microbatches; },
     [](const PipelineShape& shape, std::int64_t, std::int64_t) { return shape.microbatches; }},
    {plain_order,
     [](const PipelineShape& shape, std::int64_t stage) {
       return std::min(shape.stages - stage, shape.microbatches);
     },
     plain_heads},
    {interleaved_order, interleaved_peak, interleaved_heads},
    {plain_order,
     [](const PipelineShape& shape, std::int64_t) {
       return std::min(shape.stages, shape.microbatches);
     },
     plain_heads},
    {dual_pipe_order, [](const PipelineShape& shape, std::int64_t) { return shape.stages + 1; },
     [](const PipelineShape& shape, std::int64_t stage, std::int64_t) {
       return stage == 0 || behind(shape, stage) == 0 ? 1 : shape.stages + 1;
     }},
    {zero_bubble_v_order, [](const PipelineShape& shape, std::int64_t) { return 2 * shape.stages; },
     v_heads},
    {dual_pipe_v_order,
     [](const PipelineShape& shape, std::int64_t) { return 2 * shape.stages + 1; }, v_heads},
    {interleaved_order, interleaved_zero_bubble_peak, interleaved_heads},
});
static_assert(schedule_rules.size() == schedule_traits.size());

const ScheduleRules& rules(const PipelineShape& shape) {
  return schedule_rules[static_cast<std::size_t>(effective_schedule(shape))];
}

}  // namespace

Schedule effective_schedule(const PipelineShape& shape) {
  if (shape.schedule == Schedule::one_f_one_b && shape.chunks > 1) return Schedule::interleaved;
  if (shape.chunks > 1) return shape.schedule;
  if (shape.schedule == Schedule::interleaved) return Schedule::one_f_one_b;
  if (shape.schedule == Schedule::interleaved_zero_bubble) return Schedule::zero_bubble;
  return shape.schedule;
}

std::int64_t chunks_per_stage(const PipelineShape& shape) {
  return traits(shape.schedule).chunks == StageChunks::copies ? 2 : shape.chunks;
}

std::optional<std::string> invalid_shape(const PipelineShape& shape) {
  const std::int64_t stages = shape.stages, chunks = shape.chunks, m = shape.microbatches;
  if (stages < 1 || chunks < 1 || m < 1)
    return fmt::format("a pipeline of {} stages, {} chunks and {} microbatches has nothing to run",
                       stages, chunks, m);
  const Schedule schedule = effective_schedule(shape);
  const std::string_view name = to_text(shape.schedule);
  switch (traits(schedule).chunks) {
    case StageChunks::one:
      if (chunks == 1) return std::nullopt;
      return fmt::format("schedule {} has one chunk per stage, not {}", name, chunks);
    case StageChunks::copies:
      if (chunks > 2)
        return fmt::format("schedule {} has one chunk per direction, not {} chunks", name, chunks);
      if (stages % 2 != 0)
        return fmt::format("schedule {} needs an even number of stages, not {}", name, stages);
      if (m % 2 == 0 && m >= 2 * stages) return std::nullopt;
      return fmt::format(
          "schedule {} needs an even number of microbatches, at least twice the {} stages, not {}",
          name, stages, m);
    case StageChunks::v:
      if (chunks == 2 && stages >= 2 && m >= 2 * stages) return std::nullopt;
      return fmt::format(
          "a V-shaped schedule needs two chunks, two stages and twice as many microbatches as "
          "stages at least, not {} chunks, {} stages and {} microbatches",
          chunks, stages, m);
    case StageChunks::loops:
      if (!splits_backward(schedule) || m % stages == 0) return std::nullopt;
      return fmt::format("schedule {} needs {} stages to divide the microbatches, not {}", name,
                         stages, m);
  }
  return std::nullopt;
}

std::vector<Pass> stage_order(const PipelineShape& shape, std::int64_t stage) {
  CHECK_THAT(!invalid_shape(shape), *invalid_shape(shape));
  CHECK_THAT(stage >= 0 && stage < shape.stages, "stage outside the pipeline");
  return rules(shape).order(shape, stage);
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
  return rules(shape).peak(shape, stage);
}

std::int64_t waiting_heads(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk) {
  return std::min(rules(shape).heads(shape, stage, chunk), shape.microbatches);
}

}  // namespace orrery
