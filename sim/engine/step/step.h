// SPDX-License-Identifier: Apache-2.0
// Times a step: the one executor behind every prediction, rank by rank class.
#pragma once

#include "sim/engine/step/context.h"
#include "sim/engine/step/result.h"

namespace orrery {

struct PricedStep;

// What step() prices: the passes of every distinct layer and chunk.
StepProgram lower_step(const Model& model, const Job& job, const Layout& layout,
                       const Stack& stack);

// Times one training or inference step. The layout is valid. Pure; a mean under 0.3 ms
// (bench_step: executor_405b_16384_h100).
//
// A scattered job's step takes no less than the same job's from accelerator 0 on, on a healthy
// network, and has that one's result where it would. Now and then an algorithm does better over
// more domains, or one stream waits for another; no placement is worth more for that.
StepResult step(const StepContext& context, const Model& model, const Job& job,
                const Layout& layout, const Stack& stack);

// The same of a scattered job whose step from accelerator 0 on (contiguous_context) is known.
StepResult scattered_step(const StepContext& context, const Model& model, const Job& job,
                          const Layout& layout, const Stack& stack, const StepResult& contiguous);

// The same of a step whose passes are priced: the pipeline, tails and optimizer of training.
StepResult run_training(const PricedStep& step);
// One request batch passes the stages one after the other: latency is their sum.
StepResult run_inference(const PricedStep& step);

}  // namespace orrery
