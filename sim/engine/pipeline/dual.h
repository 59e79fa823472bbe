// SPDX-License-Identifier: Apache-2.0
// Knows how to run DualPipe, whose stages serve two directions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/pipeline/run.h"
#include "sim/engine/pipeline/steady_state.h"

namespace orrery {

// Runs one pipeline. The order of any number of microbatches is that of 2 * stages + 2 of them with
// its second main iteration (two pairs) repeated, so that memory and set-up do not grow with the
// microbatches. What comes before and after those is run stage by stage, each until its next pass
// lacks its input. A cut after the same number of main iterations on all stages leaves no pass
// without what it depends on.
class DualPipeRun {
 public:
  // Costs as complete_costs gives them.
  DualPipeRun(const PipelineShape& shape, const PipelineCosts& costs);

  // Fills the stages, whose vectors have two places; returns the passes skipped, and all passes.
  std::int64_t run(bool collapse, std::vector<StageRun>& stages, std::int64_t& passes);

  // One main iteration on all stages (see SteadyState). State: by stage, when it is free; then by
  // stage, when the two inputs of its next inward pair have arrived, not before it is free.
  template <class Time>
  void period(Time& time, std::vector<typename Time::Value>& state) const;

 private:
  struct Part {
    std::size_t begin, end;  // indices in codes_
  };
  // What one turn of a stage runs: a pass, or a pair of a forward and a backward.
  struct Turn {
    std::int64_t duration = 0, longest_send = 0;
    std::size_t passes = 1;
    int forward = -1, backward = -1;  // the chunk of which it runs a forward, or anything else
    std::array<int, 2> input{-1, -1}, output{-1, -1};  // queues, -1 for none
    std::array<std::int64_t, 2> send{};
  };

  void add_order(const PipelineShape& few, std::int64_t stage);
  Turn make_turn(std::int64_t stage, PassKind kind, int chunk, bool paired) const;
  const Turn& turn(std::int64_t stage, std::uint8_t code) const;
  void run_stage(std::int64_t stage, std::size_t& next, std::size_t end, StageRun& run);
  void run_part(const std::vector<Part>& parts, std::vector<StageRun>& stages);
  bool step(const Turn& turn, std::int64_t& free, std::int64_t& start);
  std::vector<std::int64_t> load_state();
  void store_state(const std::vector<std::int64_t>& state);
  void count(std::vector<StageRun>& stages, std::int64_t& passes) const;

  bool exists(std::int64_t stage) const { return stage >= 0 && stage < stages_; }
  std::array<std::int64_t*, 2> inward_inputs(std::int64_t stage);

  std::int64_t stages_, repeats_;
  const PipelineCosts& costs_;
  std::vector<std::uint8_t> codes_;  // the turns of all stages in order, one after the other
  std::vector<Part> before_, main_, after_;
  std::vector<Turn> turns_;  // [stage][code]
  std::vector<std::int64_t> free_;
  // Arrivals at a stage in the order of sending: four queues a stage, [stage][chunk][backward],
  // each a ring of `capacity_` places between two running counters.
  std::size_t capacity_;
  std::vector<std::int64_t> ring_;
  std::vector<std::uint32_t> head_, tail_;
};

}  // namespace orrery
