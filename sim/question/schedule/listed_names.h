// SPDX-License-Identifier: Apache-2.0
// Reads lists whose values stand in them once.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/json.h"

namespace orrery {

// Error where a value stands in the list twice.
void check_each_once(const JsonValue& list);

// Names with commas or in a list, each of `known`, none twice: else an Error.
std::vector<std::string> listed_names(const JsonValue& list, const std::vector<std::string>& known);

}  // namespace orrery
