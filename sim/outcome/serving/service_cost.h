// SPDX-License-Identifier: Apache-2.0
// Says what served tokens cost and what the GPUs draw, at the load that was served.
#pragma once

#include "sim/outcome/serving/service.h"

namespace orrery {

// Fills prediction.cost from its timeline, summary and step. `prompts` prices steps of the engines
// that compute prompts.
//
// Prompts pay for the time of their steps, and in steps with decodes for what they add to them;
// outputs for the rest; the time in which nothing runs is paid in proportion. Where engines of
// their own compute prompts, these pay for those engines. Cached tokens pay for the attention that
// reads them.
void add_cost(ServicePrediction& prediction, const ServiceCase& asked, const EnginePrices& prompts);

}  // namespace orrery
