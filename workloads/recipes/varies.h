// SPDX-License-Identifier: Apache-2.0
// Says in few words on what a value depends: on device, precision, size of the job, script.
#pragma once

#include <string>
#include <vector>

#include "workloads/recipes/book.h"

namespace orrery {

// For each of `count` values, where it holds: `value_of[i]` is the value of `recipes[i]`. The
// fewest of device, precision, GPUs, variant, sequence, model and program that decide it; where
// none do, a count. "" where there is one value.
std::vector<std::string> where_values_hold(const RecipeBook& book,
                                           const std::vector<std::size_t>& recipes,
                                           const std::vector<std::size_t>& value_of,
                                           std::size_t count);

}  // namespace orrery
