// SPDX-License-Identifier: Apache-2.0
// Prices the pipeline of a step: its shape, its passes and the messages between stages.
#pragma once

#include "sim/engine/pipeline/run.h"
#include "sim/engine/step/context.h"

namespace orrery {

struct StepPipeline {
  PipelineShape shape;
  PipelineCosts costs;
};
// Costs of the pipeline's passes, as step() computes them: for traces.
StepPipeline step_pipeline(const StepContext& context, const Model& model, const Job& job,
                           const Layout& layout, const Stack& stack);

}  // namespace orrery
