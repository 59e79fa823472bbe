// SPDX-License-Identifier: Apache-2.0
// Prices the pipeline of a step: its shape, its passes and the messages between stages.
#pragma once

#include <optional>

#include "sim/engine/network/network.h"
#include "sim/engine/pipeline/run.h"
#include "sim/engine/step/context.h"

namespace orrery {

struct PricedStep;
struct StepCase;

struct StepPipeline {
  PipelineShape shape;
  PipelineCosts costs;
  // What hidden messages cost the passes of each chunk, which is in their costs.
  std::vector<Ticks> hidden;
};
// Costs of the pipeline's passes, as step() computes them: for traces.
StepPipeline step_pipeline(const StepContext& context, const Model& model, const Job& job,
                           const Layout& layout, const Stack& stack);
// The shape alone.
PipelineShape step_shape(const PricedStep& step);
// The same of a step whose passes are priced.
StepPipeline step_pipeline(const PricedStep& step);

// One message between neighbouring stages: an activation or what comes back for it. None where
// there is one stage.
std::optional<Collective> stage_message(const Layout& layout, const Placement& placement,
                                        Bytes bytes);

}  // namespace orrery
