// SPDX-License-Identifier: Apache-2.0
// Multiplies out settings that are lists and ranges.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/json/json.h"

namespace orrery {

struct QuestionPoint {
  std::string varied;  // "engines 2xTP4, concurrency 64": its values where there are several
  JsonValue settings;  // of this point alone
  std::vector<std::pair<std::string, std::string>> values = {};  // the same: keys, and as words
};

// Every combination of the lists and ranges of these keys, in their order; ranges as in plan:
// "1..256" (each twice the last), "1..256x4", "10..50+10", {"from", "to", "times" or "step"}. A
// part of a text may be one: "poisson:2..16/s", "1..8xTP4". Error: no value, more than 10,000
// combinations.
std::vector<QuestionPoint> combinations_of(const JsonValue& settings,
                                           const std::vector<std::string>& keys);

}  // namespace orrery
