// SPDX-License-Identifier: Apache-2.0
// Runs the schedules whose passes fall on levels: GPipe, 1F1B, ZB-H1, and both with several chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sim/engine/pipeline/run.h"
#include "sim/engine/pipeline/steady_state.h"

namespace orrery {

// Runs one pipeline. Every pass has a level such that its input comes from the level before or from
// its own stage; all stages of a level are then independent, and a level is a few short loops over
// arrays. Wide schedules (interleaved, GPipe): forward k of stage s is at level k + s, backward j
// at level first_backward - s + j, and a stage runs at most one of each per level; where backwards
// are split, weight gradient j follows at level first_backward + j. Paired schedules
// (1F1B, ZB-H1): forward k is at level 2 k + s, backward j at level 2 j + 2 stages - 1 - s, so that
// even and odd stages take turns.
class PipelineLevels {
 public:
  // Costs as complete_costs gives them.
  PipelineLevels(const PipelineShape& shape, const PipelineCosts& costs);

  // Fills ends, first forwards and last backwards of the stages, whose vectors have a place for
  // every chunk; returns the passes skipped.
  std::int64_t run(bool collapse, std::vector<StageRun>& stages);

  // One period of the steady state (see SteadyState). State: by stage, when it is free, when the
  // input of its next forward and of its next backward arrives, neither before it is free.
  template <class Time>
  void period(Time& time, std::vector<typename Time::Value>& state);

 private:
  // Arrivals are by receiving stage; a forward writes to the next stage's place and a backward to
  // the previous one's, which are shifted by one so that both ends exist.
  template <class Time>
  struct Buffers {
    std::vector<typename Time::Value> free;
    std::vector<typename Time::Value> forward_in, forward_next;    // [stage]
    std::vector<typename Time::Value> backward_in, backward_next;  // [stage + 1]
  };
  // Levels [begin, end) on which all stages run alike, with this period of so many passes. A steady
  // state of more than `longest_cycle` periods is not looked for.
  struct Window {
    std::int64_t begin, end, period, passes;
    std::size_t longest_cycle;
  };

  std::vector<Window> windows() const;
  void set_costs(const PipelineCosts& costs);

  template <class Time>
  Buffers<Time>& buffers();
  template <class Time>
  void run_levels(Time& time, std::int64_t from, std::int64_t to, std::vector<StageRun>* record);
  template <class Time>
  void wide_level(Time& time, Buffers<Time>& b, std::int64_t level);
  template <class Time>
  void paired_level(Time& time, Buffers<Time>& b, std::int64_t level);
  template <class Time>
  void load(Buffers<Time>& b, const std::vector<typename Time::Value>& state) const;
  template <class Time>
  void store(Time& time, const Buffers<Time>& b, std::vector<typename Time::Value>& state) const;

  void record_first(std::int64_t level, std::vector<StageRun>& stages) const;
  void record_last(std::int64_t level, std::vector<StageRun>& stages) const;
  void record_last_weights(std::int64_t level, std::vector<StageRun>& stages) const;
  void finish(std::vector<StageRun>& stages) const;

  Schedule schedule_;
  bool paired_, split_;
  std::int64_t stages_, chunks_, microbatches_;
  std::int64_t run_length_ = 1;  // wide: virtual microbatches before the next chunk's turn
  std::int64_t runs_ = 1;        // wide: such runs in all
  std::int64_t last_width_ = 1;  // wide: microbatches that exist in the runs of the last group
  std::int64_t first_backward_ = 0;
  std::int64_t levels_ = 0;
  Window window_{};  // that `period` runs
  // Picoseconds from the start of a pass until its output arrives and until its stage is free,
  // [chunk * stages + stage].
  std::vector<std::int64_t> forward_out_, forward_free_, backward_out_, backward_free_, weight_;
  std::vector<std::int64_t> backward_weight_free_;  // backward and an older weight gradient
  std::vector<std::int64_t> forward_, backward_;    // the passes alone
  Buffers<PlainTime> plain_;
  Buffers<DriftTime> drift_;
};

}  // namespace orrery
