// SPDX-License-Identifier: Apache-2.0
// Knows what a shell script would start, without running anything.
#pragma once

#include <string>

#include "sim/launch/source/said.h"

namespace orrery {

// Follows assignments, lists, defaults, arithmetic, documents (<<), functions and conditions that
// its own variables decide. Both ways of other conditions are read: what is set there is marked.
// `sh -c TEXT` and `eval TEXT` are read as scripts. Error: text that no shell would take.
ShellScript read_shell(const std::string& text, const std::string& file);

}  // namespace orrery
