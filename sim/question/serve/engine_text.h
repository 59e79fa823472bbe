// SPDX-License-Identifier: Apache-2.0
// Reads deployments as people write them: "2xTP8", "DP8EP8", "4xTP4PP2".
#pragma once

#include <string>
#include <string_view>

#include "sim/outcome/serving/service.h"

namespace orrery {

// Axes TP, PP, DP (of attention), EP and ETP, each once. Without EP and ETP the ranks split the
// experts' width; EP alone leaves the rest of tp * dp to ETP. EP32+32 evens out its ranks, with 32
// copies of the experts that are chosen most. Error, with `flag`: anything else.
EngineGroup parse_engines(std::string_view text, const std::string& flag);
std::string to_text(const EngineLayout& layout);  // "TP4 PP2", "DP8 EP8+32"
std::string to_text(const EngineGroup& group);    // "2 x TP8"

// Error at `flag` where ranks of experts do not fill tp * attention_dp.
void check_engine(const EngineLayout& layout, const std::string& flag);

}  // namespace orrery
