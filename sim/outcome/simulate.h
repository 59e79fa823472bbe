// SPDX-License-Identifier: Apache-2.0
// Knows how to turn a scenario into a prediction: the entry point behind every command.
#pragma once

#include "sim/outcome/model_error.h"
#include "sim/outcome/prediction.h"

namespace orrery {

struct SimulateOptions {
  // Names every uncertain value that was used, with its effect, and makes the range of them.
  bool with_assumptions = true;
  double rental_per_gpu_hour = 0;  // USD; 0: the accelerator's own
  // Joins the range; it must outlive the call. nullptr: ranges of values alone.
  const ModelError* model_error = nullptr;
};

// Error when the accelerator has no unit for the precision's number format.
void check_precision(const ResolvedDevice& device, PrecisionRecipe precision);

// The values that are not facts and that a step on the ideal network depends on, with their
// effects; curves that are used outside of their region have wider ranges.
std::vector<Assumption> used_assumptions(const Scenario& scenario,
                                         const std::vector<Extrapolation>& extrapolations);

// Error when the layout is not valid for the model, job and cluster. A prediction of speed is made
// also where the memory verdict is out of memory.
Prediction simulate(const Scenario& scenario, const SimulateOptions& options);

}  // namespace orrery
