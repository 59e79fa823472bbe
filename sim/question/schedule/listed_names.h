// SPDX-License-Identifier: Apache-2.0
// Reads a list of names with commas.
#pragma once

#include <string>
#include <vector>

namespace orrery {

// Each of `known`, none twice: else an Error that names `flag`.
std::vector<std::string> listed_names(const std::string& list, const char* flag,
                                      const std::vector<std::string>& known);

}  // namespace orrery
