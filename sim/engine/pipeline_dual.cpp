// Knows how to run DualPipe, whose stages serve two directions.
#include "sim/engine/pipeline_dual.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "sim/base/check.h"

namespace orrery {
namespace {

constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

DualPipeRun::DualPipeRun(const PipelineShape& shape, const PipelineCosts& costs)
    : stages_(shape.stages),
      repeats_((shape.microbatches - 2 * shape.stages) / 2),
      costs_(costs),
      // A message waits while its microbatch is in flight on the sender or, backwards, the receiver.
      capacity_(std::bit_ceil(at(shape.stages + 2))) {
  PipelineShape few = shape;
  few.microbatches = 2 * stages_ + (repeats_ > 0 ? 2 : 0);
  for (std::int64_t s = 0; s < stages_; ++s) {
    order_.push_back(stage_order(few, s));
    const std::int64_t rank = std::min(s, stages_ - 1 - s), outer = stages_ / 2 - rank - 1;
    const std::size_t first = at(5 * outer + 2 * (rank + 1) + 4);  // after the first main iteration
    const std::size_t period = repeats_ > 0 ? 4 : 0;
    before_.push_back({0, first});
    main_.push_back({first, first + period});
    after_.push_back({first + period, order_.back().size()});
  }
  plain_.free.resize(at(stages_));
  plain_.ring.resize(at(stages_ * 4) * capacity_);
  plain_.head.resize(at(stages_ * 4));
  plain_.tail.resize(at(stages_ * 4));
}

template <class Time>
DualPipeRun::Machine<Time>& DualPipeRun::machine() {
  if constexpr (std::is_same_v<Time, PlainTime>)
    return plain_;
  else
    return drift_;
}

// Runs the pass at `cursor`, or the pair that begins there, when its inputs are there.
template <class Time>
bool DualPipeRun::step(Time& time, std::int64_t stage, std::size_t& cursor,
                       std::vector<StageRun>* record) {
  Machine<Time>& m = machine<Time>();
  const std::vector<Pass>& order = order_[at(stage)];
  const int passes = order[cursor].paired ? 2 : 1;
  auto start = m.free[at(stage)];
  for (int i = 0; i < passes; ++i) {
    const Pass& pass = order[cursor + at(i)];
    const bool backward = pass.kind != PassKind::forward;
    if (pass.kind == PassKind::weight_gradient || !exists(next(stage, pass.chunk, !backward)))
      continue;
    const std::size_t q = queue(stage, pass.chunk, backward);
    if (m.head[q] == m.tail[q]) return false;
    start = time.later(start, m.ring[q * capacity_ + (m.head[q] & (capacity_ - 1))]);
  }
  const ChunkCost& own = costs_.chunk[at(stage * 2 + order[cursor].chunk)];
  std::int64_t duration = 0;
  switch (order[cursor].kind) {
    case PassKind::forward: duration = own.forward.ps; break;
    case PassKind::backward: duration = own.backward.ps; break;
    case PassKind::input_gradient: duration = own.input_gradient.ps; break;
    case PassKind::weight_gradient: duration = own.weight_gradient.ps; break;
  }
  if (passes == 2) duration = costs_.paired[at(stage * 2 + order[cursor].chunk)].ps;
  std::int64_t longest_send = 0;
  for (int i = 0; i < passes; ++i) {
    const Pass& pass = order[cursor + at(i)];
    if constexpr (std::is_same_v<Time, PlainTime>) {
      if (record != nullptr) {
        StageRun& run = (*record)[at(stage)];
        if (pass.kind != PassKind::forward) {
          run.last_backward_start[at(pass.chunk)] = {start};
          run.last_backward[at(pass.chunk)] = {start + duration};
        } else if (run.first_forward[at(pass.chunk)].ps < 0) {
          run.first_forward[at(pass.chunk)] = {start};
        }
      }
    }
    if (pass.kind == PassKind::weight_gradient) continue;
    const bool backward = pass.kind != PassKind::forward;
    if (exists(next(stage, pass.chunk, !backward))) ++m.head[queue(stage, pass.chunk, backward)];
    const std::int64_t receiver = next(stage, pass.chunk, backward);
    if (!exists(receiver)) continue;
    const ChunkCost& cost = costs_.chunk[at(stage * 2 + pass.chunk)];
    const std::int64_t send = backward ? cost.send_backward.ps : cost.send_forward.ps;
    const std::size_t q = queue(receiver, pass.chunk, backward);
    CHECK_THAT(m.tail[q] - m.head[q] < capacity_, "more messages wait than microbatches in flight");
    m.ring[q * capacity_ + (m.tail[q]++ & (capacity_ - 1))] = start + (duration + send);
    longest_send = std::max(longest_send, send);
  }
  m.free[at(stage)] = start + (duration + (costs_.sends_block ? longest_send : 0));
  cursor += at(passes);
  return true;
}

template <class Time>
void DualPipeRun::run_part(Time& time, const std::vector<Part>& parts,
                           std::vector<StageRun>* record) {
  std::vector<std::size_t> cursor(at(stages_));
  for (std::size_t s = 0; s < cursor.size(); ++s) cursor[s] = parts[s].begin;
  bool up = true, progress = true, done = false;
  for (; !done; up = !up) {
    // Two sweeps without a step would be a deadlock: an order that waits for itself.
    const bool before = progress;
    progress = false;
    done = true;
    for (std::int64_t i = 0; i < stages_; ++i) {
      const std::int64_t s = up ? i : stages_ - 1 - i;
      while (cursor[at(s)] < parts[at(s)].end && step(time, s, cursor[at(s)], record))
        progress = true;
      done = done && cursor[at(s)] >= parts[at(s)].end;
    }
    CHECK_THAT(done || progress || before, "the pipeline waits for itself");
  }
}

template <class Time>
void DualPipeRun::load(Machine<Time>& m, const std::vector<typename Time::Value>& state) const {
  m.ring.resize(plain_.ring.size());
  m.free.assign(state.begin(), state.begin() + stages_);
  m.head.assign(waiting_.size(), 0);
  m.tail = waiting_;
  auto value = state.begin() + stages_;
  for (std::size_t q = 0; q < waiting_.size(); ++q)
    for (std::size_t i = 0; i < waiting_[q]; ++i) m.ring[q * capacity_ + i] = *value++;
}

template <class Time>
void DualPipeRun::store(Time& time, const Machine<Time>& m,
                        std::vector<typename Time::Value>& state) const {
  state.assign(m.free.begin(), m.free.end());
  for (std::size_t q = 0; q < waiting_.size(); ++q)
    for (std::uint32_t i = m.head[q]; i != m.tail[q]; ++i)
      state.push_back(time.later(m.free[q / 4], m.ring[q * capacity_ + (i & (capacity_ - 1))]));
}

template <class Time>
void DualPipeRun::period(Time& time, std::vector<typename Time::Value>& state) {
  load(machine<Time>(), state);
  run_part(time, main_, nullptr);
  store(time, machine<Time>(), state);
}

// Busy and blocked time, and the number of passes: of the order as it stands, and of the main
// iterations that are repeated.
void DualPipeRun::count(std::vector<StageRun>& stages, std::int64_t& passes) const {
  passes = 0;
  for (std::int64_t s = 0; s < stages_; ++s) {
    const std::vector<Pass>& order = order_[at(s)];
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::int64_t times = i >= main_[at(s)].begin && i < main_[at(s)].end ? repeats_ : 1;
      const Pass& pass = order[i];
      const ChunkCost& cost = costs_.chunk[at(s * 2 + pass.chunk)];
      Ticks busy = cost.forward, blocked = cost.send_forward;
      if (pass.kind == PassKind::backward) busy = cost.backward;
      if (pass.kind == PassKind::input_gradient) busy = cost.input_gradient;
      if (pass.kind == PassKind::weight_gradient) busy = cost.weight_gradient;
      if (pass.kind != PassKind::forward) blocked = cost.send_backward;
      if (pass.kind == PassKind::weight_gradient) blocked = {};
      if (pass.paired) {
        busy = costs_.paired[at(s * 2 + pass.chunk)];
        blocked = max(blocked, costs_.chunk[at(s * 2 + 1 - pass.chunk)].send_backward);
        ++i;
        passes += times;
      }
      passes += times;
      stages[at(s)].busy += busy * times;
      if (costs_.sends_block) stages[at(s)].blocked += blocked * times;
    }
  }
}

std::int64_t DualPipeRun::run(bool collapse, std::vector<StageRun>& stages, std::int64_t& passes) {
  for (StageRun& stage : stages) std::fill_n(stage.first_forward.begin(), 2, Ticks{-1});
  PlainTime plain;
  run_part(plain, before_, &stages);
  std::int64_t skipped = 0;
  if (collapse && repeats_ > 0) {
    for (std::size_t q = 0; q < plain_.head.size(); ++q)
      waiting_.push_back(plain_.tail[q] - plain_.head[q]);
    std::vector<std::int64_t> state;
    store(plain, plain_, state);
    skipped = SteadyState<DualPipeRun>().run(*this, state, repeats_) * 4 * stages_;
    load(plain_, state);
  } else {
    for (std::int64_t i = 0; i < repeats_; ++i) run_part(plain, main_, nullptr);
  }
  run_part(plain, after_, &stages);
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s].end = {plain_.free[s]};
  count(stages, passes);
  return skipped;
}

}  // namespace orrery
