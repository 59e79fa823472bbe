// SPDX-License-Identifier: Apache-2.0
// Finds a time below which no simulated step of a layout lies: the search prunes by it.
#pragma once

#include "sim/base/units/units.h"
#include "sim/engine/step/context.h"

namespace orrery {

// The tensor work of the whole model at the best rate that the calibration allows, spread evenly
// over the GPUs, and the pipeline's fill and drain. Admissible (law 9): bound(layout) <=
// step(layout) for every valid layout of the same model, job, precision and stack. Tens of
// nanoseconds per layout (bench_parts: bound).
class StepBound {
 public:
  // `like` gives precision and optimizer.
  StepBound(const StepContext& context, const Model& model, const Job& job, const Stack& stack,
            const Layout& like);
  Seconds operator()(const Layout& layout) const;

 private:
  Job job_;
  double plain_ = 0;  // seconds of tensor work of one sequence on one GPU, forward and backward
  double recomputed_ = 0;  // the same with every layer recomputed
};

// How many times the mean work of a stage passes before the last of `stages` uneven stages has run
// `microbatches` and the pipeline has filled and drained, in microbatches of the whole pipeline.
// A stage s with work w_s per microbatch ends no earlier than w_1 + .. + w_(s-1) + m w_s; the least
// over all divisions of the same total of the greatest of these is total / (1 - (1 - 1/m)^p).
double pipeline_passes(std::int64_t stages, std::int64_t microbatches);

}  // namespace orrery
