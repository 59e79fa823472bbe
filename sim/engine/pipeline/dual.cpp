// SPDX-License-Identifier: Apache-2.0
// Knows how to run DualPipe, whose stages serve two directions.
#include "sim/engine/pipeline/dual.h"

#include <algorithm>
#include <bit>

#include "sim/base/errors/check.h"
#include "sim/base/whole.h"

namespace orrery {
namespace {

// Turns are told apart by chunk and by kind of pass, a pair being a kind of its own.
constexpr std::size_t kinds = 5, codes_per_stage = 2 * kinds;
constexpr std::uint8_t code(std::size_t kind, int chunk) {
  return static_cast<std::uint8_t>(static_cast<std::size_t>(chunk) * kinds + kind);
}
constexpr std::uint8_t pair_code(int chunk) { return code(4, chunk); }

int queue(std::int64_t stage, int chunk, bool backward) {
  return static_cast<int>(stage) * 4 + chunk * 2 + (backward ? 1 : 0);
}

// Where a chunk's output goes, or its input gradient: the stage after or before.
std::int64_t receiver(std::int64_t stage, int chunk, bool backward) {
  return stage + ((chunk == 0) == backward ? -1 : 1);
}

}  // namespace

DualPipeRun::DualPipeRun(const PipelineShape& shape, const PipelineCosts& costs)
    : stages_(shape.stages),
      repeats_((shape.microbatches - 2 * shape.stages) / 2),
      costs_(costs),
      free_(at(shape.stages)),
      // A message waits while its microbatch is in flight on the sender or, backwards, the
      // receiver.
      capacity_(std::bit_ceil(at(shape.stages + 2))),
      ring_(at(shape.stages * 4) * capacity_),
      head_(at(shape.stages * 4)),
      tail_(at(shape.stages * 4)) {
  PipelineShape few = shape;
  few.microbatches = 2 * stages_ + (repeats_ > 0 ? 2 : 0);
  for (std::int64_t s = 0; s < stages_; ++s) {
    add_order(few, s);
    for (int chunk : {0, 1}) {
      for (PassKind kind : {PassKind::forward, PassKind::backward, PassKind::input_gradient,
                            PassKind::weight_gradient})
        turns_.push_back(make_turn(s, kind, chunk, false));
      turns_.push_back(make_turn(s, PassKind::forward, chunk, true));
    }
  }
}

void DualPipeRun::add_order(const PipelineShape& few, std::int64_t stage) {
  const std::int64_t rank = std::min(stage, stages_ - 1 - stage), outer = stages_ / 2 - rank - 1;
  const std::int64_t first_main = 5 * outer + 2 * (rank + 1);  // passes before the main iterations
  const std::size_t begin = codes_.size();
  std::size_t main = begin;
  std::int64_t passes = 0;
  bool second = false;
  for (const Pass& pass : stage_order(few, stage)) {
    if (!second)
      codes_.push_back(pass.paired ? pair_code(pass.chunk)
                                   : code(static_cast<std::size_t>(pass.kind), pass.chunk));
    second = pass.paired;
    if (++passes == first_main + 4) main = codes_.size();
  }
  const std::size_t period = repeats_ > 0 ? 2 : 0;
  before_.push_back({begin, main});
  main_.push_back({main, main + period});
  after_.push_back({main + period, codes_.size()});
}

DualPipeRun::Turn DualPipeRun::make_turn(std::int64_t stage, PassKind kind, int chunk,
                                         bool paired) const {
  const ChunkCost& cost = costs_.chunk[at(stage * 2 + chunk)];
  Turn turn;
  (kind == PassKind::forward ? turn.forward : turn.backward) = chunk;
  if (paired) turn.backward = 1 - chunk;
  switch (kind) {
    case PassKind::forward:
      turn.duration = cost.forward.ps;
      break;
    case PassKind::backward:
      turn.duration = cost.backward.ps;
      break;
    case PassKind::input_gradient:
      turn.duration = cost.input_gradient.ps;
      break;
    case PassKind::weight_gradient:
      turn.duration = cost.weight_gradient.ps;
      return turn;
  }
  if (paired) turn.duration = costs_.paired[at(stage * 2 + chunk)].ps;
  turn.passes = paired ? 2 : 1;
  for (std::size_t i = 0; i < turn.passes; ++i) {
    const bool backward = kind != PassKind::forward || i == 1;
    const int which = i == 0 ? chunk : 1 - chunk;
    const ChunkCost& sent = costs_.chunk[at(stage * 2 + which)];
    turn.send[i] = backward ? sent.send_backward.ps : sent.send_forward.ps;
    turn.longest_send = std::max(turn.longest_send, turn.send[i]);
    if (exists(receiver(stage, which, !backward))) turn.input[i] = queue(stage, which, backward);
    const std::int64_t to = receiver(stage, which, backward);
    if (exists(to)) turn.output[i] = queue(to, which, backward);
  }
  return turn;
}

const DualPipeRun::Turn& DualPipeRun::turn(std::int64_t stage, std::uint8_t code) const {
  return turns_[at(stage) * codes_per_stage + code];
}

// Runs one turn of a stage when its inputs are there.
bool DualPipeRun::step(const Turn& turn, std::int64_t& free, std::int64_t& start) {
  start = free;
  for (int input : turn.input) {
    if (input < 0) continue;
    const std::size_t q = at(input);
    if (head_[q] == tail_[q]) return false;
    start = std::max(start, ring_[q * capacity_ + (head_[q] & (capacity_ - 1))]);
  }
  for (std::size_t i = 0; i < turn.passes; ++i) {
    if (turn.input[i] >= 0) ++head_[at(turn.input[i])];
    if (turn.output[i] < 0) continue;
    const std::size_t q = at(turn.output[i]);
    CHECK_THAT(tail_[q] - head_[q] < capacity_, "more messages wait than microbatches in flight");
    ring_[q * capacity_ + (tail_[q]++ & (capacity_ - 1))] = start + turn.duration + turn.send[i];
  }
  free = start + turn.duration + (costs_.sends_block ? turn.longest_send : 0);
  return true;
}

void DualPipeRun::run_stage(std::int64_t stage, std::size_t& next, std::size_t end, StageRun& run) {
  for (; next < end; ++next) {
    const Turn& now = turn(stage, codes_[next]);
    std::int64_t start = 0;
    if (!step(now, free_[at(stage)], start)) return;
    if (now.forward >= 0 && run.first_forward[at(now.forward)].ps < 0)
      run.first_forward[at(now.forward)] = {start};
    if (now.backward < 0) continue;
    run.last_backward_start[at(now.backward)] = {start};
    run.last_backward[at(now.backward)] = {start + now.duration};
  }
}

// Sweeps up and down the stages until all are done; two sweeps without a turn would be a deadlock.
void DualPipeRun::run_part(const std::vector<Part>& parts, std::vector<StageRun>& stages) {
  std::vector<std::size_t> next(at(stages_));
  for (std::size_t s = 0; s < next.size(); ++s) next[s] = parts[s].begin;
  bool progress = true, before = true;
  for (bool up = true; progress || before; up = !up) {
    before = progress;
    progress = false;
    for (std::int64_t i = 0; i < stages_; ++i) {
      const std::int64_t s = up ? i : stages_ - 1 - i;
      const std::size_t from = next[at(s)];
      run_stage(s, next[at(s)], parts[at(s)].end, stages[at(s)]);
      progress = progress || next[at(s)] != from;
    }
  }
  for (std::size_t s = 0; s < next.size(); ++s)
    CHECK_THAT(next[s] == parts[s].end, "the pipeline waits for itself");
}

// In the main iterations a stage alternates between an inward pair, whose forward and backward both
// come from the stage towards its own end and go on towards the middle, and an outward pair, the
// other way: what moves is always a forward and a backward of one pair, and the later one counts.
// An inward pair needs the pair of the iteration before, an outward pair one of the same iteration;
// the two middle stages turn each other's inward pairs into outward ones.
template <class Time>
void DualPipeRun::period(Time& time, std::vector<typename Time::Value>& state) const {
  using Value = typename Time::Value;
  const std::int64_t half = stages_ / 2;
  Value* const free = state.data();
  Value* const arrived = free + stages_;
  std::array<Value, 2> crossing{};
  const auto run_pair = [&](std::int64_t s, int chunk, Value input) {
    const Turn& pair = turn(s, pair_code(chunk));
    const Value end = time.later(free[s], input) + pair.duration;
    const Value sent = end + pair.longest_send;
    free[s] = costs_.sends_block ? sent : end;
    return sent;
  };
  for (std::int64_t rank = half - 1; rank >= 0; --rank) {
    for (int side : {0, 1}) {
      const std::int64_t s = side == 0 ? rank : stages_ - 1 - rank;
      const Value sent = run_pair(s, side, arrived[s]);
      if (rank == half - 1)
        crossing[at(1 - side)] = sent;
      else
        arrived[side == 0 ? s + 1 : s - 1] = sent;
    }
  }
  for (std::int64_t rank = half - 1; rank >= 0; --rank)
    for (int side : {0, 1}) {
      const std::int64_t s = side == 0 ? rank : stages_ - 1 - rank;
      crossing[at(side)] = run_pair(s, 1 - side, crossing[at(side)]);
    }
  arrived[0] = free[0];  // the outermost inward pairs need no input
  arrived[stages_ - 1] = free[stages_ - 1];
  for (std::int64_t s = 1; s < stages_ - 1; ++s) arrived[s] = time.later(arrived[s], free[s]);
}

// Where the two inputs of a stage's next inward pair wait.
std::array<std::int64_t*, 2> DualPipeRun::inward_inputs(std::int64_t stage) {
  std::array<std::int64_t*, 2> inputs{};
  const Turn& pair = turn(stage, pair_code(stage < stages_ / 2 ? 0 : 1));
  for (std::size_t i = 0; i < 2; ++i) {
    if (pair.input[i] < 0) continue;
    const std::size_t q = at(pair.input[i]);
    CHECK_THAT(tail_[q] - head_[q] == 1, "one inward pair is under way between two stages");
    inputs[i] = &ring_[q * capacity_ + (head_[q] & (capacity_ - 1))];
  }
  return inputs;
}

std::vector<std::int64_t> DualPipeRun::load_state() {
  std::vector<std::int64_t> state = free_;
  for (std::int64_t s = 0; s < stages_; ++s) {
    std::int64_t arrived = free_[at(s)];
    for (const std::int64_t* input : inward_inputs(s))
      if (input != nullptr) arrived = std::max(arrived, *input);
    state.push_back(arrived);
  }
  return state;
}

void DualPipeRun::store_state(const std::vector<std::int64_t>& state) {
  for (std::int64_t s = 0; s < stages_; ++s) {
    free_[at(s)] = state[at(s)];
    for (std::int64_t* input : inward_inputs(s))
      if (input != nullptr) *input = state[at(stages_ + s)];
  }
}

// Busy and blocked time, and the number of passes: of the order as it stands, and of the main
// iterations that are repeated.
void DualPipeRun::count(std::vector<StageRun>& stages, std::int64_t& passes) const {
  passes = 0;
  for (std::int64_t s = 0; s < stages_; ++s) {
    for (std::size_t i = before_[at(s)].begin; i < after_[at(s)].end; ++i) {
      const std::int64_t times = i >= main_[at(s)].begin && i < main_[at(s)].end ? repeats_ : 1;
      const Turn& now = turn(s, codes_[i]);
      stages[at(s)].busy += Ticks{now.duration} * times;
      if (costs_.sends_block) stages[at(s)].blocked += Ticks{now.longest_send} * times;
      passes += static_cast<std::int64_t>(now.passes) * times;
    }
  }
}

std::int64_t DualPipeRun::run(bool collapse, std::vector<StageRun>& stages, std::int64_t& passes) {
  for (StageRun& stage : stages) std::fill_n(stage.first_forward.begin(), 2, Ticks{-1});
  run_part(before_, stages);
  std::int64_t skipped = 0;
  if (repeats_ > 0) {
    std::vector<std::int64_t> state = load_state();
    skipped = SteadyState(*this, at(stages_)).run(state, repeats_, collapse) * 4 * stages_;
    store_state(state);
  }
  run_part(after_, stages);
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s].end = {free_[s]};
  count(stages, passes);
  return skipped;
}

}  // namespace orrery
