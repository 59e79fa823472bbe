// SPDX-License-Identifier: Apache-2.0
// Prints nested errors: a line for each set of runs, then for each group, the worst first.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/validate/nested/groups.h"

namespace orrery {

std::string nested_text(const std::vector<NestedPoint>& points);
Json nested_json(const std::vector<NestedPoint>& points);

}  // namespace orrery
