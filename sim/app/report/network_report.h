// SPDX-License-Identifier: Apache-2.0
// Knows how the flow network's part of a prediction is shown: bytes by layer, busiest links,
// losses.
#pragma once

#include <string>

#include "sim/base/json/tree.h"
#include "sim/outcome/prediction.h"
#include "sim/paper/document.h"

namespace orrery {

// Nothing for predictions on the ideal network.
void add_network(Document& document, const Scenario& scenario, const Prediction& prediction);
Json network_json(const Prediction& prediction);

}  // namespace orrery
