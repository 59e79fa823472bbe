// SPDX-License-Identifier: Apache-2.0
// Lists the leaves of JSON, so that two documents are compared value by value.
#pragma once

#include <map>
#include <string>

#include "sim/base/json/tree.h"

namespace orrery {

// The leaves by their JSON pointers ("/layout/tp"); an empty object or array is a null leaf.
std::map<std::string, SortedJson> leaves_of(const SortedJson& value);

}  // namespace orrery
