// SPDX-License-Identifier: Apache-2.0
// Knows what has to be said beside the figures of a served model.
#pragma once

#include <string>
#include <vector>

#include "sim/outcome/serving/service.h"

namespace orrery {

// Sentences: a release that nothing is known of, GPUs without work, prompts that fill a step,
// sequences that have no states.
std::vector<std::string> service_notes(const ServiceCase& asked, const ServicePrediction& found);

}  // namespace orrery
