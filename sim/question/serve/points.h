// SPDX-License-Identifier: Apache-2.0
// Makes the points of a question whose values are lists and ranges.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/json.h"

namespace orrery {

struct QuestionPoint {
  std::string varied;  // "engines 2xTP4, concurrency 64": its values where there are several
  JsonValue settings;  // of this point alone
};

// Every combination of the lists and ranges, in the order of serve_settings(); ranges as in plan:
// "1..256" (each twice the last), "1..256x4", "10..50+10", {"from", "to", "times" or "step"}. A
// part of a text may be one: "poisson:2..16/s", "1..8xTP4". Error: no value, more than 10,000
// combinations, several values of a setting that has one (`for`, `classes`).
std::vector<QuestionPoint> points_of(const JsonValue& settings);

// The setting as it stands in a list: a flag's text, with commas between values.
bool is_one_value(const std::string& key);

}  // namespace orrery
