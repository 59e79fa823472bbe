// SPDX-License-Identifier: Apache-2.0
// Finds where a prediction leaves the shapes that its curves were measured on, and what that costs.
#pragma once

#include <vector>

#include "hw_models/calibration.h"
#include "sim/engine/step/context.h"
#include "sim/outcome/prediction.h"

namespace orrery {

// Curves of which a step runs kernels outside the region in which they were measured, the most
// growth first. A curve's growth is the mean over its kernels, weighted by their time, of octaves
// outside times the error per octave; a larger head than was measured, and another library's
// decode, count for what they were seen to cost. Curves without a region say nothing; where none
// has one, nothing is computed.
std::vector<Extrapolation> find_extrapolations(const StepContext& context, const Model& model,
                                               const Job& job, const Layout& layout,
                                               const Stack& stack);

// Names of the curves that price a step's kernels.
std::vector<std::string> used_curves(const StepContext& context, const Model& model, const Job& job,
                                     const Layout& layout, const Stack& stack);

// Makes the range of each such curve's scale wider by its growth, and an estimate of what was
// measured: find_assumptions then carries it into the range of the prediction.
void widen_extrapolated(Calibration& calibration, const std::vector<Extrapolation>& found);

// One sentence: the curve, each axis with the measured range and the used value, and the growth.
std::string to_text(const Extrapolation& extrapolation);

}  // namespace orrery
