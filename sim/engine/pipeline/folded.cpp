// SPDX-License-Identifier: Apache-2.0
// Knows how to run ZB-V, whose stages hold a chunk of the model's way out and one of its way back.
#include "sim/engine/pipeline/folded.h"

#include <algorithm>

#include "sim/base/errors/check.h"
#include "sim/base/whole.h"

namespace orrery {
namespace {

constexpr std::size_t iteration = 6;  // passes in a stable iteration

bool is_forward(const Pass& pass) { return pass.kind == PassKind::forward; }

// Whether a pass hands its result from a stage to the next one; else to the one before.
bool goes_up(const Pass& pass) { return is_forward(pass) == (pass.chunk == 0); }

}  // namespace

FoldedRun::FoldedRun(const PipelineShape& shape, const PipelineCosts& costs)
    : stages_(shape.stages),
      repeats_(shape.microbatches - 2 * shape.stages),
      costs_(costs),
      free_(at(shape.stages)),
      queues_(at(shape.stages * 4)) {
  PipelineShape few = shape;
  few.microbatches = 2 * stages_ + (repeats_ > 0 ? 1 : 0);
  for (Queue& q : queues_) q.ring.resize(at(few.microbatches));
  for (std::int64_t s = 0; s < stages_; ++s) {
    orders_.push_back(stage_order(few, s));
    // Warm-up: 2 (stages - s) - 1 forwards, s pairs of them, stages - s forwards with backwards.
    const std::size_t stable = at(2 * (stages_ - s) - 1 + 2 * s + 3 * (stages_ - s));
    before_.push_back({0, stable});
    after_.push_back({stable + (repeats_ > 0 ? iteration : 0), orders_.back().size()});
  }
}

FoldedRun::Queue* FoldedRun::input(std::int64_t stage, const Pass& pass) {
  if (pass.kind == PassKind::weight_gradient) return nullptr;
  const bool from_above = !goes_up(pass);
  if (from_above ? stage + 1 == stages_ : stage == 0) return nullptr;
  return &queue(stage, pass.chunk, !is_forward(pass));
}

FoldedRun::Queue* FoldedRun::output(std::int64_t stage, const Pass& pass) {
  if (pass.kind == PassKind::weight_gradient) return nullptr;
  const std::int64_t to = stage + (goes_up(pass) ? 1 : -1);
  return to < 0 || to == stages_ ? nullptr : &queue(to, pass.chunk, !is_forward(pass));
}

bool FoldedRun::step(std::int64_t stage, const Pass& pass, StageRun& run) {
  std::int64_t& free = free_[at(stage)];
  std::int64_t start = free;
  if (Queue* from = input(stage, pass)) {
    if (from->empty()) return false;
    start = std::max(start, from->front());
    ++from->head;
  }
  const ChunkCost& c = cost(stage, pass.chunk);
  const std::size_t chunk = at(pass.chunk);
  std::int64_t end = start;
  if (is_forward(pass)) {
    end += c.forward.ps;
    if (run.first_forward[chunk].ps < 0) run.first_forward[chunk] = {start};
  } else {
    end += pass.kind == PassKind::input_gradient ? c.input_gradient.ps : c.weight_gradient.ps;
    run.last_backward_start[chunk] = {start};
    run.last_backward[chunk] = {end};
  }
  free = end;
  if (Queue* to = output(stage, pass)) {
    const Ticks send = is_forward(pass) ? c.send_forward : c.send_backward;
    to->push(end + send.ps);
    free += blocking(send);
  }
  return true;
}

// Sweeps up and down the stages until all are done; two sweeps without a pass would be a deadlock.
void FoldedRun::run_part(const std::vector<Part>& parts, std::vector<StageRun>& stages) {
  std::vector<std::size_t> next;
  for (const Part& part : parts) next.push_back(part.begin);
  bool progress = true, before = true;
  for (bool up = true; progress || before; up = !up) {
    before = progress;
    progress = false;
    for (std::int64_t i = 0; i < stages_; ++i) {
      const std::int64_t s = up ? i : stages_ - 1 - i;
      while (next[at(s)] < parts[at(s)].end &&
             step(s, orders_[at(s)][next[at(s)]], stages[at(s)])) {
        ++next[at(s)];
        progress = true;
      }
    }
  }
  for (std::size_t s = 0; s < next.size(); ++s)
    CHECK_THAT(next[s] == parts[s].end, "the pipeline waits for itself");
}

// From when a stage is free until, at the earliest, its input gradient of chunk 1 may start.
std::int64_t FoldedRun::to_second_input(std::int64_t stage) const {
  const ChunkCost &out = cost(stage, 0), &back = cost(stage, 1);
  return out.forward.ps + blocking(out.send_forward) + out.input_gradient.ps +
         blocking(out.send_backward) + out.weight_gradient.ps + back.forward.ps +
         blocking(back.send_forward);
}

template <class Time>
void FoldedRun::period(Time& time, std::vector<typename Time::Value>& state) const {
  using Value = typename Time::Value;
  Value* const free = state.data();
  Value* const first = free + stages_;
  Value* const second = first + stages_;
  Value gradient{}, forward{};  // that arrive from the next stage
  for (std::int64_t s = stages_ - 1; s >= 0; --s) {
    const ChunkCost &out = cost(s, 0), &back = cost(s, 1);
    const bool last = s + 1 == stages_;
    Value now = time.later(free[s], first[s]) + out.forward.ps;
    const Value first_sent = now + out.send_forward.ps;
    now = now + blocking(out.send_forward);
    if (!last) now = time.later(now, gradient);
    now = now + out.input_gradient.ps;
    gradient = now + out.send_backward.ps;
    now = now + (blocking(out.send_backward) + out.weight_gradient.ps);
    if (!last) now = time.later(now, forward);
    now = now + back.forward.ps;
    forward = now + back.send_forward.ps;
    now = time.later(now + blocking(back.send_forward), second[s]) + back.input_gradient.ps;
    const Value second_sent = now + back.send_backward.ps;
    free[s] = now + (blocking(back.send_backward) + back.weight_gradient.ps);
    if (last) continue;
    // Stage s + 1 has run this iteration: what it takes next is the iteration after's.
    first[s + 1] = time.later(first_sent, free[s + 1]);
    second[s + 1] = time.later(second_sent, free[s + 1] + to_second_input(s + 1));
  }
  first[0] = free[0];
  second[0] = free[0] + to_second_input(0);
}

std::vector<std::int64_t> FoldedRun::load_state() {
  std::vector<std::int64_t> state(at(3 * stages_));
  for (std::int64_t s = 0; s < stages_; ++s) {
    const std::int64_t free = free_[at(s)];
    state[at(s)] = free;
    state[at(stages_ + s)] = s == 0 ? free : std::max(free, queue(s, 0, false).front());
    const std::int64_t earliest = free + to_second_input(s);
    state[at(2 * stages_ + s)] = s == 0 ? earliest : std::max(earliest, queue(s, 1, true).front());
  }
  return state;
}

void FoldedRun::store_state(const std::vector<std::int64_t>& state) {
  for (std::int64_t s = 0; s < stages_; ++s) {
    free_[at(s)] = state[at(s)];
    if (s == 0) continue;
    queue(s, 0, false).front() = state[at(stages_ + s)];
    queue(s, 1, true).front() = state[at(2 * stages_ + s)];
  }
}

std::int64_t FoldedRun::run(bool collapse, std::vector<StageRun>& stages) {
  for (StageRun& stage : stages) std::fill_n(stage.first_forward.begin(), 2, Ticks{-1});
  run_part(before_, stages);
  std::int64_t skipped = 0;
  if (repeats_ > 0) {
    std::vector<std::int64_t> state = load_state();
    skipped = SteadyState(*this, at(stages_)).run(state, repeats_, collapse) *
              static_cast<std::int64_t>(iteration) * stages_;
    store_state(state);
  }
  run_part(after_, stages);
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s].end = {free_[s]};
  return skipped;
}

}  // namespace orrery
