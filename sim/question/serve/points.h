// SPDX-License-Identifier: Apache-2.0
// Makes the points of a question whose values are lists and ranges.
#pragma once

#include <string>
#include <vector>

#include "sim/question/plan/combinations.h"

namespace orrery {

// Every combination of the lists and ranges, in the order of serve_settings(). Error: several
// values of a setting that has one (`for`, `classes`).
std::vector<QuestionPoint> points_of(const JsonValue& settings);

// The setting as it stands in a list: a flag's text, with commas between values.
bool is_one_value(const std::string& key);

}  // namespace orrery
