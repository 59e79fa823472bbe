// SPDX-License-Identifier: Apache-2.0
// Lists the collectives of a stage with their counts and what each does to the network.
#pragma once

#include <vector>

#include "sim/engine/step/result.h"

namespace orrery {

struct PricedStep;

// Of a stage in a step, those that take longest first. Empty on the ideal network.
std::vector<NetworkUse> network_use(const PricedStep& step, std::int64_t stage);

}  // namespace orrery
