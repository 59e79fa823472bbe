// SPDX-License-Identifier: Apache-2.0
// Says how many experts the loads of measured tables reach.
#pragma once

#include <cstdint>

namespace orrery {

// Experts that get at least one of the routed tokens. aiconfigurator's skewed loads (power law with
// exponent 1.01, collector/helper.py) are log-uniform between 1 and 0.8 tokens, between 0.01 and 2
// where there are no more rows than experts; scaled to the rows, whole by largest remainders. At
// 85% of the memory's bandwidth the tables of large experts read as many, within 5%.
std::int64_t active_experts(std::int64_t experts, std::int64_t tokens, std::int64_t topk,
                            bool skewed);

}  // namespace orrery
