// SPDX-License-Identifier: Apache-2.0
// Lays out a stage's passes and the messages between stages.
#include "sim/chakra/stage_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/base/whole.h"

namespace orrery {
namespace {

bool is_forward(const Pass& pass) { return pass.kind == PassKind::forward; }

// Where a stage's chunks lie in the model, and who is next to them.
class Places {
 public:
  explicit Places(const PipelineShape& shape) : shape_(shape), chunks_(chunks_per_stage(shape)) {}

  // The stage whose result a pass starts from; nullopt: none, or what the stage has itself.
  std::optional<std::int64_t> from(std::int64_t stage, const Pass& pass) const {
    return neighbour(stage, pass, is_forward(pass) ? -1 : 1);
  }
  std::optional<std::int64_t> to(std::int64_t stage, const Pass& pass) const {
    return neighbour(stage, pass, is_forward(pass) ? 1 : -1);
  }
  // Tells messages from one stage to another apart: by the place in the model that gets them.
  std::int64_t tag(std::int64_t stage, const Pass& pass, bool sent) const {
    const std::int64_t step = !sent ? 0 : is_forward(pass) ? 1 : -1;
    const std::int64_t place = position(stage, pass.chunk) + step;
    const std::int64_t way = enters_at_both_ends(shape_.schedule) ? pass.chunk : 0;
    return ((pass.microbatch * 2 + way) * chunks_ * shape_.stages + place) * 2 +
           (is_forward(pass) ? 0 : 1);
  }

 private:
  std::int64_t position(std::int64_t stage, std::int64_t chunk) const {
    if (is_v_shaped(shape_.schedule) && chunk == 1) return 2 * shape_.stages - 1 - stage;
    if (enters_at_both_ends(shape_.schedule)) return chunk == 0 ? stage : shape_.stages - 1 - stage;
    return chunk * shape_.stages + stage;
  }
  std::int64_t stage_of(std::int64_t place, std::int64_t chunk) const {
    if (is_v_shaped(shape_.schedule))
      return place < shape_.stages ? place : 2 * shape_.stages - 1 - place;
    const bool reversed = enters_at_both_ends(shape_.schedule) && chunk == 1;
    return reversed ? shape_.stages - 1 - place : place % shape_.stages;
  }
  std::optional<std::int64_t> neighbour(std::int64_t stage, const Pass& pass,
                                        std::int64_t step) const {
    if (pass.kind == PassKind::weight_gradient) return std::nullopt;
    const std::int64_t last =
        (enters_at_both_ends(shape_.schedule) ? 1 : chunks_) * shape_.stages - 1;
    const std::int64_t place = position(stage, pass.chunk) + step;
    if (place < 0 || place > last) return std::nullopt;
    const std::int64_t other = stage_of(place, pass.chunk);
    if (other == stage) return std::nullopt;
    return other;
  }

  PipelineShape shape_;
  std::int64_t chunks_;
};

class StageWriter {
 public:
  StageWriter(const PricedStep& step, const StepPipeline& pipeline, TracePrices& prices,
              PassTraces& traces, std::int64_t stage, StageTrace& out)
      : step_(step),
        costs_(complete_costs(pipeline.shape, pipeline.costs)),
        chunks_(chunks_per_stage(pipeline.shape)),
        places_(pipeline.shape),
        prices_(prices),
        traces_(traces),
        stage_(stage),
        out_(out) {}

  // Passes that start together: one, or the two of a pair.
  NodeList add(std::span<const PassTime> together) {
    NodeList ready = now_;
    for (const PassTime& t : together) ready = receive(t.pass, ready);
    for (const PassTime& t : together) ready = traces_.add(t.pass, time_of(t.pass), ready);
    now_ = ready;
    for (const PassTime& t : together) send(t.pass, ready);
    return ready;
  }

 private:
  const ChunkCost& cost(std::int64_t stage, const Pass& pass) const {
    return costs_.chunk[at(stage * chunks_ + pass.chunk)];
  }
  Ticks time_of(const Pass& pass) const {
    const ChunkCost& c = cost(stage_, pass);
    switch (pass.kind) {
      case PassKind::forward:
        return c.forward;
      case PassKind::backward:
        return c.backward;
      case PassKind::input_gradient:
        return c.input_gradient;
      case PassKind::weight_gradient:
        return c.weight_gradient;
    }
    return {};
  }
  Bytes bytes_of(const Pass& pass) const {
    const StepProgram& program = *step_.layers.program;
    return is_forward(pass) || !step_.asked.training() ? program.send_bytes
                                                       : program.gradient_send_bytes;
  }
  // What the prediction gives a message beyond the trace's network.
  Seconds beyond(std::int64_t to, const Pass& pass) const {
    const ChunkCost& own = cost(stage_, pass);
    const Ticks predicted = is_forward(pass) ? own.send_forward : own.send_backward;
    return std::max(Seconds(0),
                    to_seconds(predicted) - prices_.message(stage_, to, bytes_of(pass)));
  }
  static std::string name_of(const Pass& pass) {
    return fmt::format("{} {}.{}", to_text(pass.kind), pass.microbatch, pass.chunk);
  }

  // A receive is posted when the pass before has ended: a program with one stream for all
  // communication would wait in it.
  NodeList receive(const Pass& pass, const NodeList& after) {
    const auto from = places_.from(stage_, pass);
    if (!from || step_.asked.layout.pp == 1) return after;
    return after + NodeList{out_.add({.name = name_of(pass) + ": receive",
                                      .type = TraceNodeType::receive,
                                      .after = now_,
                                      .bytes = std::round(bytes_of(pass).si()),
                                      .peer_stage = *from,
                                      .tag = places_.tag(stage_, pass, false)})};
  }

  void send(const Pass& pass, const NodeList& after) {
    const auto to = places_.to(stage_, pass);
    if (!to || step_.asked.layout.pp == 1) return;
    const NodeList ready = out_.host(name_of(pass) + ": before its send", beyond(*to, pass), after);
    const NodeIndex own = out_.add({.name = name_of(pass) + ": send",
                                    .type = TraceNodeType::send,
                                    .after = ready,
                                    .bytes = std::round(bytes_of(pass).si()),
                                    .peer_stage = *to,
                                    .tag = places_.tag(stage_, pass, true)});
    if (costs_.sends_block) now_ = now_ + NodeList{own};
  }

  const PricedStep& step_;
  PipelineCosts costs_;
  std::int64_t chunks_;
  Places places_;
  TracePrices& prices_;
  PassTraces& traces_;
  std::int64_t stage_;
  StageTrace& out_;
  NodeList now_;  // what the next pass waits for
};

// Appends a run of some microbatches that starts at `start`; returns its end.
Ticks append_run(const StepPipeline& p, std::int64_t microbatches, std::int64_t first, Ticks start,
                 std::vector<std::vector<PassTime>>& to) {
  PipelineShape shape = p.shape;
  shape.microbatches = microbatches;
  Ticks end = start;
  const auto run = trace_pipeline(shape, p.costs);
  to.resize(run.size());
  for (std::size_t s = 0; s < run.size(); ++s)
    for (PassTime t : run[s]) {
      t.pass.microbatch += first;
      t.start += start;
      t.end += start;
      end = max(end, t.end);
      to[s].push_back(t);
    }
  return end;
}

}  // namespace

std::vector<std::vector<PassTime>> step_passes(const PricedStep& step, const StepPipeline& p) {
  std::vector<std::vector<PassTime>> passes;
  if (!step.asked.training()) {
    Ticks now;
    for (const ChunkCost& chunk : p.costs.chunk) {
      passes.push_back({{.pass = {}, .start = now, .end = now + chunk.forward}});
      now += chunk.forward + chunk.send_forward;
    }
    return passes;
  }
  // As run_by_batches of sim/engine/step/step.cpp cuts them.
  const std::int64_t each = step.asked.stack.communication.schedule_microbatches;
  const bool two_a_stage = holds_two_chunks(p.shape.schedule);
  const std::int64_t round = (two_a_stage ? 2 : 1) * p.shape.stages;
  const std::int64_t batch = (each + round - 1) / round * round, all = p.shape.microbatches;
  Ticks end;
  std::int64_t done = 0;
  while (done < all) {
    std::int64_t next = each > 0 && batch < all ? std::min(batch, all - done) : all;
    const std::int64_t rest = all - done - next;
    if (two_a_stage && rest > 0 && rest < round) next += rest;
    end = append_run(p, next, done, end, passes);
    done += next;
  }
  return passes;
}

StagePasses add_passes(const PricedStep& step, const StepPipeline& pipeline,
                       const std::vector<PassTime>& passes, TracePrices& prices, PassTraces& traces,
                       std::int64_t stage, StageTrace& out) {
  StageWriter writer(step, pipeline, prices, traces, stage, out);
  StagePasses result;
  for (std::size_t i = 0; i < passes.size();) {
    const std::size_t together = passes[i].pass.paired ? 2 : 1;
    const NodeList nodes = writer.add({passes.data() + i, together});
    result.ended.push_back({.time = passes[i + together - 1].end, .nodes = nodes});
    i += together;
  }
  return result;
}

}  // namespace orrery
