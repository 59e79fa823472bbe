// SPDX-License-Identifier: Apache-2.0
// Knows the values of serving stacks that whole served runs have made: fits, shares, a list.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/calibrate/steps/step_fit.h"
#include "sim/validate/nested/free_values.h"
#include "sim/validate/served/served_slopes.h"

namespace orrery {

// What is left out together: all rows of a family of models, and all of a campaign.
using ServedFold = std::pair<std::string, std::string>;
ServedFold fold_of(const ServedSlopes& row);
bool leaves_out(const ServedFold& fold, const ServedSlopes& row);

// "trtllm@b200/inferencex"
std::string engine_of(const ServingRow& row);
// Rows of one family and engine of a campaign: they err together.
std::string cell_of(const ServedSlopes& row);

// The stack's values by all rows that the fold does not leave out; nullptr: by all.
StepFit fit_served(const ServedModel& model, const std::string& stack, const ServedFold* without,
                   int threads);

// Values that are no facts where scored rows use them, with shares and a fit to all.
std::vector<FreeValue> served_free_values(const ServedModel& model, const FitRun& run);
// The fit to all rows, by stack.
std::string served_fit_text(const ServedModel& model, const FitRun& run);

}  // namespace orrery
