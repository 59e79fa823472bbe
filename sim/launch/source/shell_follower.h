// SPDX-License-Identifier: Apache-2.0
// Knows how the commands of a script follow on each other.
#pragma once

#include <string>
#include <vector>

#include "sim/launch/source/said.h"
#include "sim/launch/source/shell_lexer.h"
#include "sim/launch/source/shell_variables.h"

namespace orrery {

// Adds what the tokens would start to `out`; `depth` counts scripts in texts of scripts.
void follow_shell(const std::vector<ShellToken>& tokens, const std::string& file,
                  ShellVariables& variables, ShellScript& out, int depth);

}  // namespace orrery
