// SPDX-License-Identifier: Apache-2.0
// Puts the passes of priced chunks and the messages between stages together to a pipeline.
#include "sim/engine/step/pipeline.h"

#include <algorithm>

#include "sim/engine/step/chunks.h"
#include "sim/engine/step/overlap.h"

namespace orrery {
namespace {

Ticks send_time(const PricedStep& step, std::int64_t stage, Bytes bytes) {
  const auto message = stage_message(step.asked.layout, step.layers.placement, bytes);
  if (!message) return {};
  return to_ticks(step.layers.network->price(*message, stage).time +
                  step.layers.debug.of(message->group));
}

// What a message that no stage waits for costs the pass beside it.
Ticks hidden_cost(const PricedStep& step, const StepPipeline& p, Ticks message, Ticks pass) {
  if (p.costs.sends_block || !step.asked.training()) return {};
  const double cost = step.asked.stack.communication.overlap_cost.get();
  return to_ticks(beside_pass(to_seconds(message), to_seconds(pass), cost));
}

}  // namespace

std::optional<Collective> stage_message(const Layout& layout, const Placement& placement,
                                        Bytes bytes) {
  if (layout.pp == 1) return std::nullopt;
  return Collective{
      .kind = CollectiveKind::send_receive, .group = placement.stage_pair, .bytes = bytes};
}

PipelineShape step_shape(const PricedStep& step) {
  const Layout& layout = step.asked.layout;
  const bool training = step.asked.training();
  return {.schedule = training ? layout.schedule : Schedule::one_f_one_b,
          .stages = layout.pp,
          .chunks = step.chunks.per_stage(),
          .microbatches = training ? layout.microbatches(step.asked.job) : 1};
}

StepPipeline step_pipeline(const PricedStep& step) {
  const Layout& layout = step.asked.layout;
  const Stack& stack = step.asked.stack;
  const StepProgram& program = *step.layers.program;
  const bool training = step.asked.training();
  StepPipeline p;
  p.shape = step_shape(step);
  const bool block = layout.vpp == 1 ? stack.communication.pipeline_sends_block
                                     : stack.communication.interleaved_sends_block;
  p.costs.sends_block = block && !splits_backward(layout.schedule);
  for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
    // A message goes over the link to the next stage, its gradient comes back over the same one.
    const Bytes returned = training ? program.gradient_send_bytes : program.send_bytes;
    const Ticks send = send_time(step, stage, program.send_bytes);
    const Ticks back = send_time(step, std::max<std::int64_t>(0, stage - 1), returned);
    for (std::int64_t chunk = 0; chunk < p.shape.chunks; ++chunk) {
      const ChunkTime& t = step.chunks.at(stage, chunk);
      const bool returns = chunk == 1 && is_v_shaped(p.shape.schedule);
      const Ticks gradients = splits_backward(layout.schedule)
                                  ? t.input_gradient.total + t.weight_gradient.total
                                  : t.backward.total;
      const Ticks on = t.program.head ? Ticks{} : returns ? back : send;
      const Ticks to_before = t.program.embedding ? Ticks{} : returns ? send : back;
      const Ticks on_cost = hidden_cost(step, p, on, t.forward.total);
      const Ticks before_cost = hidden_cost(step, p, to_before, gradients);
      p.hidden.push_back(on_cost + before_cost);
      p.costs.chunk.push_back({.forward = t.forward.total + on_cost,
                               .backward = gradients + before_cost,
                               .input_gradient = t.input_gradient.total + before_cost,
                               .weight_gradient = t.weight_gradient.total,
                               .send_forward = on,
                               .send_backward = to_before});
    }
  }
  return p;
}

StepPipeline step_pipeline(const StepContext& context, const Model& model, const Job& job,
                           const Layout& layout, const Stack& stack) {
  const StepCase asked{context, model, job, layout, stack};
  const PricedLayers layers = price_layers(asked);
  KnownChunks known;
  return step_pipeline(
      PricedStep{asked, layers, PricedChunks(asked, layers, layers.program->chunks, known)});
}

}  // namespace orrery
