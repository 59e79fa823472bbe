// SPDX-License-Identifier: Apache-2.0
// Knows how objects become YAML that people edit.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/tree.h"

namespace orrery {

// Members in their order, texts without quotes where they read back the same, several lines as a
// block. The value is an object.
std::string to_yaml(const Json& value);
// One document after the other, after the comment.
std::string to_yaml(const std::string& comment, const std::vector<Json>& documents);

}  // namespace orrery
