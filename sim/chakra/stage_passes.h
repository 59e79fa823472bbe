// SPDX-License-Identifier: Apache-2.0
// Knows the passes of a stage in a trace: their order, what they wait for and what they send.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/chakra/pass_trace.h"
#include "sim/engine/step/pipeline.h"

namespace orrery {

// Passes of all stages with their times. Where a program runs its schedule for some of the
// microbatches at a time, one run after the other.
std::vector<std::vector<PassTime>> step_passes(const PricedStep& step,
                                               const StepPipeline& pipeline);

// How the passes of a stage ended in the trace.
struct StagePasses {
  struct Ended {
    Ticks time;
    NodeList nodes;
  };
  std::vector<Ended> ended;  // in their order
};

// Appends a stage's passes and messages to its nodes.
StagePasses add_passes(const PricedStep& step, const StepPipeline& pipeline,
                       const std::vector<PassTime>& passes, TracePrices& prices, PassTraces& traces,
                       std::int64_t stage, StageTrace& out);

}  // namespace orrery
