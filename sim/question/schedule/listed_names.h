// SPDX-License-Identifier: Apache-2.0
// Reads a list of names with commas.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/json.h"

namespace orrery {

// Each of `known`, none twice: else an Error.
std::vector<std::string> listed_names(const JsonValue& list, const std::vector<std::string>& known);

}  // namespace orrery
