// SPDX-License-Identifier: Apache-2.0
// Runs the schedules whose passes fall on levels: GPipe, 1F1B, ZB-H1, and both with several chunks.
#include "sim/engine/pipeline/levels.h"

#include <algorithm>

#include "sim/base/whole.h"

namespace orrery {
namespace {

// Runs one pass on each of the stages low, low + step .. high: `in[s]` is when the input of stage s
// arrives and `out[s]` gets the arrival of its output at the neighbour.
template <std::int64_t step, class Time, class Value = typename Time::Value>
inline void run_passes(Time& time, Value* __restrict free, const Value* __restrict in,
                       Value* __restrict out, const std::int64_t* __restrict out_cost,
                       const std::int64_t* __restrict free_cost, std::int64_t low,
                       std::int64_t high) {
  for (std::int64_t s = low; s <= high; s += step) {
    const Value start = time.later(free[s], in[s]);
    out[s] = start + out_cost[s];
    free[s] = start + free_cost[s];
  }
}

}  // namespace

PipelineLevels::PipelineLevels(const PipelineShape& shape, const PipelineCosts& costs)
    : schedule_(effective_schedule(shape)),
      paired_(schedule_ == Schedule::one_f_one_b || schedule_ == Schedule::zero_bubble),
      split_(splits_backward(schedule_)),
      stages_(shape.stages),
      chunks_(shape.chunks),
      microbatches_(shape.microbatches) {
  if (paired_) {
    first_backward_ = 2 * stages_ - 1;
    levels_ = 2 * (microbatches_ - 1) + first_backward_ + 1;
  } else if (schedule_ == Schedule::gpipe) {
    run_length_ = std::max(microbatches_, stages_);
    last_width_ = microbatches_;
    first_backward_ = microbatches_ + 2 * stages_ - 2;
    levels_ = first_backward_ + microbatches_;
  } else {
    run_length_ = stages_;
    const std::int64_t groups = (microbatches_ + stages_ - 1) / stages_;
    runs_ = groups * chunks_;
    last_width_ = microbatches_ - (groups - 1) * stages_;
    // Stage s has first_backward - 2 s forwards before its first pair: Megatron-Core's warm-up.
    first_backward_ = 2 * (stages_ - 1) + (chunks_ - 1) * stages_;
    levels_ = first_backward_ + runs_ * run_length_;
  }
  set_costs(costs);
}

void PipelineLevels::set_costs(const PipelineCosts& costs) {
  const std::size_t size = at(stages_ * chunks_);
  for (auto* cost : {&forward_out_, &forward_free_, &backward_out_, &backward_free_, &forward_,
                     &backward_, &backward_weight_free_})
    cost->resize(size);
  weight_.resize(size);
  for (std::int64_t s = 0; s < stages_; ++s) {
    for (std::int64_t c = 0; c < chunks_; ++c) {
      const ChunkCost& cost = costs.chunk[at(s * chunks_ + c)];
      const std::size_t i = at(c * stages_ + s);
      forward_[i] = cost.forward.ps;
      backward_[i] = split_ ? cost.input_gradient.ps : cost.backward.ps;
      forward_out_[i] = forward_[i] + cost.send_forward.ps;
      backward_out_[i] = backward_[i] + cost.send_backward.ps;
      forward_free_[i] = costs.sends_block ? forward_out_[i] : forward_[i];
      backward_free_[i] = costs.sends_block ? backward_out_[i] : backward_[i];
      weight_[i] = cost.weight_gradient.ps;
      backward_weight_free_[i] = backward_free_[i] + weight_[i];
    }
  }
}

std::vector<PipelineLevels::Window> PipelineLevels::windows() const {
  if (schedule_ == Schedule::gpipe)
    return {{stages_, microbatches_, 1, stages_, 2},
            {first_backward_, first_backward_ + microbatches_ - stages_, 1, stages_, 2}};
  // A loop over j + 1 stages of 1F1B has j + 1 microbatches on it.
  const std::size_t loop = at(stages_);
  if (paired_ && split_) return {{3 * stages_, 2 * microbatches_ - 1, 2, 3 * stages_, loop}};
  if (paired_) return {{2 * stages_, 2 * microbatches_ - 1, 2, 2 * stages_, loop}};
  // A single stage does the last group's first last backward already on the last full level.
  const std::int64_t period = chunks_ * stages_;
  return {{std::max(first_backward_, period),
           microbatches_ / stages_ * period - (stages_ == 1 ? 1 : 0), period,
           (split_ ? 3 : 2) * stages_ * period, 4}};
}

template <class Time>
PipelineLevels::Buffers<Time>& PipelineLevels::buffers() {
  if constexpr (std::is_same_v<Time, PlainTime>)
    return plain_;
  else
    return drift_;
}

// A run of chunk passes covers stages on which the same chunk has its turn. At one level the stages
// nearest to the entry are in run `run`, the others in the run before.
template <class Time>
void PipelineLevels::wide_level(Time& time, Buffers<Time>& b, std::int64_t level) {
  const auto width = [this](std::int64_t run) {
    return run < 0 || run >= runs_ ? 0 : run < runs_ - chunks_ ? run_length_ : last_width_;
  };
  std::int64_t run = level / run_length_, offset = level % run_length_;
  const auto forward = [&](std::int64_t r, std::int64_t low, std::int64_t high) {
    const std::int64_t c = r % chunks_ * stages_;
    run_passes<1>(time, b.free.data(), b.forward_in.data(), b.forward_next.data() + 1,
                  forward_out_.data() + c, forward_free_.data() + c, low, high);
  };
  if (const std::int64_t w = width(run))
    forward(run, std::max<std::int64_t>(0, offset - w + 1), std::min(offset, stages_ - 1));
  if (const std::int64_t w = width(run - 1))
    forward(run - 1, offset + run_length_ - w + 1, stages_ - 1);
  if (offset + 1 < run_length_ ? run % chunks_ == 0 : (run + 1) % chunks_ == 0)
    b.forward_next[0] = Time::constant(0);  // the first chunk's input needs nobody
  else
    b.forward_next[0] = b.forward_next[at(stages_)];
  std::swap(b.forward_in, b.forward_next);

  const std::int64_t index = level - first_backward_ + stages_ - 1;  // at the last stage
  if (index < 0) return;
  const std::int64_t last = stages_ - 1;
  run = index / run_length_;
  offset = index % run_length_;
  const auto backward = [&](std::int64_t r, std::int64_t low, std::int64_t high) {
    const std::int64_t c = (chunks_ - 1 - r % chunks_) * stages_;
    run_passes<1>(time, b.free.data(), b.backward_in.data() + 1, b.backward_next.data(),
                  backward_out_.data() + c, backward_free_.data() + c, last - high, last - low);
  };
  if (const std::int64_t w = width(run))
    backward(run, std::max<std::int64_t>(0, offset - w + 1), std::min(offset, last));
  if (const std::int64_t w = width(run - 1)) backward(run - 1, offset + run_length_ - w + 1, last);
  if (split_ && level >= first_backward_) {
    // The weight gradient `stage` virtual microbatches later is that of one chunk on all stages.
    const std::int64_t late = (level - first_backward_) / run_length_;
    const std::int64_t* weight = weight_.data() + (chunks_ - 1 - late % chunks_) * stages_;
    for (std::int64_t s = 0; s < stages_; ++s) b.free[at(s)] = b.free[at(s)] + weight[s];
  }
  if (offset + 1 < run_length_ ? run % chunks_ == 0 : (run + 1) % chunks_ == 0)
    b.backward_next[at(stages_)] = Time::constant(0);  // its own forward came before
  else
    b.backward_next[at(stages_)] = b.backward_next[0];
  std::swap(b.backward_in, b.backward_next);
}

// Stages of the level's parity run forwards, the others backwards; what is sent is read on the next
// level by stages of the other parity, so the buffers need no second copy.
template <class Time>
void PipelineLevels::paired_level(Time& time, Buffers<Time>& b, std::int64_t level) {
  const std::int64_t last_microbatch = 2 * (microbatches_ - 1);
  auto* forward = b.forward_in.data();
  for (std::int64_t s = std::max(level - last_microbatch, level & 1),
                    high = std::min(level, stages_ - 1);
       s <= high; s += 2) {
    const auto start = time.later(b.free[at(s)], forward[s]);
    forward[s + 1] = start + forward_out_[at(s)];
    b.free[at(s)] = start + forward_free_[at(s)];
  }
  auto* backward = b.backward_in.data();
  const std::int64_t low = std::max(first_backward_ - level, (level + 1) & 1);
  const std::int64_t high = std::min(stages_ - 1, first_backward_ - level + last_microbatch);
  // Microbatch j is at least s, so that the weight gradient of j - s is due.
  const std::int64_t with_weight = split_ ? std::min(high, level - first_backward_) : low - 1;
  const auto run = [&](std::int64_t s, std::int64_t to, const std::int64_t* free_cost) {
    for (; s <= to; s += 2) {
      const auto start = time.later(b.free[at(s)], backward[s + 1]);
      backward[s] = start + backward_out_[at(s)];
      b.free[at(s)] = start + free_cost[s];
    }
    return s;
  };
  run(run(low, with_weight, backward_weight_free_.data()), high, backward_free_.data());
}

template <class Time>
void PipelineLevels::run_levels(Time& time, std::int64_t from, std::int64_t to,
                                std::vector<StageRun>* record) {
  Buffers<Time>& b = buffers<Time>();
  for (std::int64_t level = from; level < to; ++level) {
    if (paired_)
      paired_level(time, b, level);
    else
      wide_level(time, b, level);
    if constexpr (std::is_same_v<Time, PlainTime>) {
      if (record == nullptr) continue;
      record_first(level, *record);
      if (split_ && !paired_)
        record_last_weights(level, *record);
      else
        record_last(level, *record);
    }
  }
}

template <class Time>
void PipelineLevels::load(Buffers<Time>& b, const std::vector<typename Time::Value>& state) const {
  const std::size_t n = at(stages_);
  const auto* data = state.data();
  b.free.assign(data, data + n);
  b.forward_in.resize(n + 1);
  b.backward_in.resize(n + 1);
  b.forward_next.resize(n + 1);
  b.backward_next.resize(n + 1);
  std::copy(data + n, data + 2 * n, b.forward_in.begin());
  std::copy(data + 2 * n, data + 3 * n, b.backward_in.begin() + 1);
}

// An arrival before the stage is free cannot matter, nor can (paired) a place that is written
// before it is read: both are set to the stage's free time.
template <class Time>
void PipelineLevels::store(Time& time, const Buffers<Time>& b,
                           std::vector<typename Time::Value>& state) const {
  const std::size_t n = at(stages_);
  const std::size_t odd = at(window_.begin & 1);
  for (std::size_t s = 0; s < n; ++s) {
    const bool forward_turn = !paired_ || (s & 1) == odd;
    const bool backward_turn = !paired_ || (s & 1) != odd;
    state[s] = b.free[s];
    state[n + s] = forward_turn ? time.later(b.free[s], b.forward_in[s]) : b.free[s];
    state[2 * n + s] = backward_turn ? time.later(b.free[s], b.backward_in[s + 1]) : b.free[s];
  }
}

template <class Time>
void PipelineLevels::period(Time& time, std::vector<typename Time::Value>& state) {
  load(buffers<Time>(), state);
  run_levels(time, window_.begin, window_.begin + window_.period, nullptr);
  store(time, buffers<Time>(), state);
}

void PipelineLevels::record_first(std::int64_t level, std::vector<StageRun>& stages) const {
  const std::int64_t chunk = paired_ ? 0 : level / run_length_;
  const std::int64_t stage = paired_ ? level : level % run_length_;
  if (chunk >= chunks_ || stage >= stages_) return;
  const std::int64_t start =
      plain_.forward_in[at(stage + 1)] - forward_out_[at(chunk * stages_ + stage)];
  stages[at(stage)].first_forward[at(chunk)] = {start};
}

void PipelineLevels::record_last(std::int64_t level, std::vector<StageRun>& stages) const {
  std::int64_t stage, turn = 0;
  if (paired_) {
    stage = levels_ - 1 - level;
  } else {
    // The last microbatch of the turn-th chunk is here turn * run_length - stage after this level.
    const std::int64_t after =
        level - first_backward_ - (runs_ - chunks_) * run_length_ - (last_width_ - 1);
    turn = after <= 0 ? 0 : (after + run_length_ - 1) / run_length_;
    stage = turn * run_length_ - after;
  }
  if (stage < 0 || stage >= stages_ || turn >= chunks_) return;
  const std::int64_t chunk = chunks_ - 1 - turn;
  const std::size_t i = at(chunk * stages_ + stage);
  const std::int64_t start = plain_.backward_in[at(stage)] - backward_out_[i];
  stages[at(stage)].last_backward_start[at(chunk)] = {start};
  stages[at(stage)].last_backward[at(chunk)] = {start + backward_[i]};
}

// Of several chunks with split backwards: the weight gradients of a chunk's last microbatch are on
// one level, on all stages.
void PipelineLevels::record_last_weights(std::int64_t level, std::vector<StageRun>& stages) const {
  const std::int64_t done = level - first_backward_ + 1;
  const std::int64_t chunk = runs_ - done / run_length_;
  if (done <= 0 || done % run_length_ != 0 || chunk >= chunks_) return;
  for (std::int64_t s = 0; s < stages_; ++s) {
    const std::int64_t end = plain_.free[at(s)];
    stages[at(s)].last_backward[at(chunk)] = {end};
    stages[at(s)].last_backward_start[at(chunk)] = {end - weight_[at(chunk * stages_ + s)]};
  }
}

void PipelineLevels::finish(std::vector<StageRun>& stages) const {
  for (std::int64_t s = 0; s < stages_; ++s) {
    StageRun& stage = stages[at(s)];
    if (paired_ && split_) {
      const std::int64_t late = std::min(s, microbatches_);
      stage.last_backward[0] = {plain_.free[at(s)] + late * weight_[at(s)]};
      stage.last_backward_start[0] = {stage.last_backward[0].ps - weight_[at(s)]};
    }
    stage.end = stage.last_backward[0];
  }
}

std::int64_t PipelineLevels::run(bool collapse, std::vector<StageRun>& stages) {
  PlainTime plain;
  std::vector<std::int64_t> state(at(3 * stages_));
  load(plain_, state);
  std::int64_t level = 0, skipped = 0;
  for (const Window& window : windows()) {
    const std::int64_t periods = (window.end - window.begin) / window.period;
    if (!collapse || periods < 2) continue;
    run_levels(plain, level, window.begin, &stages);
    window_ = window;
    store(plain, plain_, state);
    skipped += SteadyState(*this, window.longest_cycle).run(state, periods) * window.passes;
    load(plain_, state);
    level = window.begin + periods * window.period;
  }
  run_levels(plain, level, levels_, &stages);
  finish(stages);
  return skipped;
}

}  // namespace orrery
