// SPDX-License-Identifier: Apache-2.0
// Knows how to run ZB-V, whose stages hold a chunk of the model's way out and one of its way back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/pipeline/run.h"
#include "sim/engine/pipeline/steady_state.h"

namespace orrery {

// Runs one pipeline. The order of any number of microbatches is that of 2 * stages + 1 of them with
// its first stable iteration (forward and whole backward of chunk 0, then of chunk 1) repeated, so
// that memory and set-up do not grow with the microbatches. A cut after the same number of
// iterations on all stages leaves no pass without what it depends on: in one iteration a stage's
// input gradient of chunk 0 and forward of chunk 1 come from the next stage, its forward of chunk 0
// and input gradient of chunk 1 from the previous stage's iteration before.
class FoldedRun {
 public:
  // Costs as complete_costs gives them.
  FoldedRun(const PipelineShape& shape, const PipelineCosts& costs);

  // Fills ends, first forwards and last backwards of the stages; returns the passes skipped.
  std::int64_t run(bool collapse, std::vector<StageRun>& stages);

  // One stable iteration on all stages (see SteadyState). State: by stage, when it is free, then
  // when the forward of chunk 0 has its input, then when the input gradient of chunk 1 has its own;
  // neither before the stage can use it.
  template <class Time>
  void period(Time& time, std::vector<typename Time::Value>& state) const;

 private:
  // Arrivals in the order of sending: a ring between two running counters.
  struct Queue {
    std::vector<std::int64_t> ring;
    std::size_t head = 0, tail = 0;
    bool empty() const { return head == tail; }
    void push(std::int64_t time) { ring[tail++ % ring.size()] = time; }
    std::int64_t& front() { return ring[head % ring.size()]; }
  };
  struct Part {
    std::size_t begin, end;  // indices in the stage's order
  };

  const ChunkCost& cost(std::int64_t stage, std::int64_t chunk) const {
    return costs_.chunk[static_cast<std::size_t>(stage * 2 + chunk)];
  }
  // Where the input of a pass waits, and where its output goes; null where it has none or where the
  // stage's own order serves.
  Queue* input(std::int64_t stage, const Pass& pass);
  Queue* output(std::int64_t stage, const Pass& pass);
  Queue& queue(std::int64_t stage, std::int64_t chunk, bool backward) {
    return queues_[static_cast<std::size_t>(stage * 4 + chunk * 2 + (backward ? 1 : 0))];
  }
  std::int64_t blocking(Ticks send) const { return costs_.sends_block ? send.ps : 0; }
  bool step(std::int64_t stage, const Pass& pass, StageRun& run);
  void run_part(const std::vector<Part>& parts, std::vector<StageRun>& stages);
  std::int64_t to_second_input(std::int64_t stage) const;
  std::vector<std::int64_t> load_state();
  void store_state(const std::vector<std::int64_t>& state);

  std::int64_t stages_, repeats_;
  const PipelineCosts& costs_;
  std::vector<std::vector<Pass>> orders_;
  std::vector<Part> before_, after_;
  std::vector<std::int64_t> free_;
  std::vector<Queue> queues_;  // [stage][chunk][backward]
};

}  // namespace orrery
