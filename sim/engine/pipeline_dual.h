// Knows how to run DualPipe, whose stages serve two directions.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/pipeline_run.h"
#include "sim/engine/steady_state.h"

namespace orrery {

// Runs one pipeline: stages take turns, each runs until its next pass lacks its input. The order of
// any number of microbatches is that of 2 * stages + 2 of them with its second main iteration (two
// pairs) repeated, so that memory and set-up do not grow with the microbatches. A cut after the same
// number of main iterations on all stages leaves no pass without what it depends on.
class DualPipeRun {
 public:
  // Costs as complete_costs gives them.
  DualPipeRun(const PipelineShape& shape, const PipelineCosts& costs);

  // Fills the stages, whose vectors have two places; returns the passes skipped, and all passes.
  std::int64_t run(bool collapse, std::vector<StageRun>& stages, std::int64_t& passes);

  // One main iteration on all stages (see SteadyState). State: by stage, when it is free; then the
  // arrivals that wait in each queue, none before the stage is free.
  template <class Time>
  void period(Time& time, std::vector<typename Time::Value>& state);

 private:
  struct Part {
    std::size_t begin, end;  // indices in a stage's order
  };
  // Arrivals at a stage in the order of sending: four queues a stage, [stage][chunk][backward], each
  // a ring of `capacity_` places between two running counters.
  template <class Time>
  struct Machine {
    std::vector<typename Time::Value> free, ring;
    std::vector<std::uint32_t> head, tail;
  };

  template <class Time>
  Machine<Time>& machine();
  template <class Time>
  void run_part(Time& time, const std::vector<Part>& parts, std::vector<StageRun>* record);
  template <class Time>
  bool step(Time& time, std::int64_t stage, std::size_t& cursor, std::vector<StageRun>* record);
  template <class Time>
  void load(Machine<Time>& m, const std::vector<typename Time::Value>& state) const;
  template <class Time>
  void store(Time& time, const Machine<Time>& m, std::vector<typename Time::Value>& state) const;
  void count(std::vector<StageRun>& stages, std::int64_t& passes) const;

  std::size_t queue(std::int64_t stage, int chunk, bool backward) const {
    return static_cast<std::size_t>(stage * 4 + chunk * 2 + (backward ? 1 : 0));
  }
  // The stage a chunk's output goes to or its input gradient; the neighbour before or after.
  std::int64_t next(std::int64_t stage, int chunk, bool backward) const {
    return stage + ((chunk == 0) == backward ? -1 : 1);
  }
  bool exists(std::int64_t stage) const { return stage >= 0 && stage < stages_; }

  std::int64_t stages_, repeats_;
  const PipelineCosts& costs_;
  std::vector<std::vector<Pass>> order_;
  std::vector<Part> before_, main_, after_;
  std::size_t capacity_;
  std::vector<std::uint32_t> waiting_;  // by queue, at the cut between main iterations
  Machine<PlainTime> plain_;
  Machine<DriftTime> drift_;
};

}  // namespace orrery
