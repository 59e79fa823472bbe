// SPDX-License-Identifier: Apache-2.0
// Knows the Chrome trace format that Perfetto opens: one row per pipeline stage.
#pragma once

#include <string>

#include "sim/engine/scenario.h"
#include "sim/outcome/prediction.h"

namespace orrery {

// Every pass of every stage of one step, then gradients and optimizer. Error when the step has more
// than a million passes (use fewer microbatches for a picture).
std::string trace_json(const Scenario& scenario, const Prediction& prediction);

}  // namespace orrery
