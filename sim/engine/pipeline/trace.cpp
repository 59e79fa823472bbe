// SPDX-License-Identifier: Apache-2.0
// Knows the start and end of every pass of a pipeline, found one event at a time.
#include <algorithm>

#include "sim/base/errors/check.h"
#include "sim/base/whole.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/pipeline/run.h"

namespace orrery {
namespace {

enum EventKind : std::uint32_t { pass_ended, input_arrived, stage_freed };

// Each stage walks its order: whenever it is free and the input of its next pass has arrived, the
// pass starts.
class PipelineTrace {
 public:
  PipelineTrace(const PipelineShape& shape, const PipelineCosts& costs)
      : shape_(shape), chunks_(chunks_per_stage(shape)), costs_(complete_costs(shape, costs)) {
    for (std::int64_t s = 0; s < shape.stages; ++s) {
      times_.emplace_back();
      for (const Pass& pass : stage_order(shape, s)) times_.back().push_back({pass, {}, {}});
    }
    arrived_.resize(at(shape.stages * chunks_ * shape.microbatches * 2));
    done_.resize(at(shape.stages));
    busy_.resize(at(shape.stages));
  }

  std::vector<std::vector<PassTime>> run() {
    for (std::int64_t s = 0; s < shape_.stages; ++s) try_start({}, s);
    Ticks now;
    Event event;
    while (queue_.pop(now, event)) {
      switch (static_cast<EventKind>(event.kind)) {
        case pass_ended:
          send_outputs(now, event.a);
          break;
        case input_arrived:
          arrived_[at(event.b)] = true;
          try_start(now, event.a);
          break;
        case stage_freed:
          busy_[at(event.a)] = false;
          try_start(now, event.a);
          break;
      }
    }
    for (std::size_t s = 0; s < times_.size(); ++s)
      CHECK_THAT(done_[s] == times_[s].size(), "the pipeline waits for itself");
    return std::move(times_);
  }

 private:
  const ChunkCost& cost(std::int64_t stage, const Pass& pass) const {
    return costs_.chunk[at(stage * chunks_ + pass.chunk)];
  }
  static bool is_forward(const Pass& pass) { return pass.kind == PassKind::forward; }
  std::size_t passes_at_once(std::int64_t stage) const {
    return times_[at(stage)][done_[at(stage)]].pass.paired ? 2 : 1;
  }

  // A place in the model: the second direction of stages with copies runs from the last stage to
  // the first, and so does a V's way back.
  std::int64_t position(std::int64_t stage, std::int64_t chunk) const {
    if (is_v_shaped(shape_.schedule) && chunk == 1) return 2 * shape_.stages - 1 - stage;
    if (!enters_at_both_ends(shape_.schedule)) return chunk * shape_.stages + stage;
    return chunk == 0 ? stage : shape_.stages - 1 - stage;
  }
  // The stage of a place that a pass of this chunk hands its result to.
  std::int64_t stage_of(std::int64_t place, std::int64_t chunk) const {
    if (is_v_shaped(shape_.schedule))
      return place < shape_.stages ? place : 2 * shape_.stages - 1 - place;
    const bool reversed = enters_at_both_ends(shape_.schedule) && chunk == 1;
    return reversed ? shape_.stages - 1 - place : place % shape_.stages;
  }
  std::int64_t last_position() const {
    return (enters_at_both_ends(shape_.schedule) ? 1 : chunks_) * shape_.stages - 1;
  }
  std::int64_t input_id(std::int64_t pos, const Pass& pass) const {
    const std::int64_t direction = enters_at_both_ends(shape_.schedule) ? pass.chunk : 0;
    const std::int64_t place = direction * shape_.stages + pos;
    return (place * shape_.microbatches + pass.microbatch) * 2 + (is_forward(pass) ? 0 : 1);
  }

  bool input_is_there(std::int64_t stage, const Pass& pass) const {
    // Within a stage the order alone serves: a weight gradient follows its input gradient, and the
    // last position's backward its own forward.
    const std::int64_t pos = position(stage, pass.chunk);
    if (pass.kind == PassKind::weight_gradient) return true;
    if (pos == (is_forward(pass) ? 0 : last_position())) return true;
    return arrived_[at(input_id(pos, pass))];
  }

  Ticks duration(std::int64_t stage, const Pass& pass) const {
    if (pass.paired) return costs_.paired[at(stage * 2 + pass.chunk)];
    switch (pass.kind) {
      case PassKind::forward:
        return cost(stage, pass).forward;
      case PassKind::backward:
        return cost(stage, pass).backward;
      case PassKind::input_gradient:
        return cost(stage, pass).input_gradient;
      case PassKind::weight_gradient:
        return cost(stage, pass).weight_gradient;
    }
    return {};
  }

  void try_start(Ticks now, std::int64_t stage) {
    auto& times = times_[at(stage)];
    const std::size_t first = done_[at(stage)];
    if (busy_[at(stage)] || first == times.size()) return;
    const std::size_t count = passes_at_once(stage);
    for (std::size_t i = 0; i < count; ++i)
      if (!input_is_there(stage, times[first + i].pass)) return;
    const Ticks end = now + duration(stage, times[first].pass);
    for (std::size_t i = 0; i < count; ++i) {
      times[first + i].start = now;
      times[first + i].end = end;
    }
    busy_[at(stage)] = true;
    queue_.push(end, {pass_ended, stage, 0});
  }

  void send_outputs(Ticks now, std::int64_t stage) {
    Ticks longest;
    for (std::size_t count = passes_at_once(stage); count > 0; --count) {
      const Pass& pass = times_[at(stage)][done_[at(stage)]++].pass;
      if (pass.kind == PassKind::weight_gradient) continue;
      const std::int64_t to = position(stage, pass.chunk) + (is_forward(pass) ? 1 : -1);
      if (to < 0 || to > last_position()) continue;
      const Ticks send =
          is_forward(pass) ? cost(stage, pass).send_forward : cost(stage, pass).send_backward;
      longest = max(longest, send);
      queue_.push(now + send, {input_arrived, stage_of(to, pass.chunk), input_id(to, pass)});
    }
    queue_.push(costs_.sends_block ? now + longest : now, {stage_freed, stage, 0});
  }

  PipelineShape shape_;
  std::int64_t chunks_;
  PipelineCosts costs_;
  std::vector<std::vector<PassTime>> times_;
  std::vector<bool> arrived_, busy_;
  std::vector<std::size_t> done_;  // passes of each stage that have ended
  EventQueue queue_;
};

}  // namespace

std::vector<std::vector<PassTime>> trace_pipeline(const PipelineShape& shape,
                                                  const PipelineCosts& costs) {
  CHECK_THAT(!invalid_shape(shape), *invalid_shape(shape));
  return PipelineTrace(shape, costs).run();
}

}  // namespace orrery
