// SPDX-License-Identifier: Apache-2.0
// Knows the passes of a pipeline one by one: what a picture of its schedule needs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/scenario.h"
#include "workloads/layout/pipeline.h"

namespace orrery {

struct TimelinePass {
  std::int64_t stage = 0;
  Pass pass;
  Seconds start, end;  // from the begin of the step
};

struct Timeline {
  std::int64_t microbatches = 0, of = 0;  // drawn, and of the step: fewer where a picture would
                                          // have too many passes
  Seconds end;                            // of the last pass that is drawn
  double idle = 0;                        // of the whole step: share of the stages' time, until the
                                          // last pass, without one
  std::vector<TimelinePass> passes;       // stage by stage, in time
};

// Of a training step whose layout is valid. nullopt: it has one stage, is inference, or has so many
// stages that no picture holds them.
std::optional<Timeline> step_timeline(const Scenario& scenario);

}  // namespace orrery
