// SPDX-License-Identifier: Apache-2.0
// Knows the commands of the binary: a row here and a file of its own make one.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

// In the order of the help.
std::vector<Command> commands();

// Takes the arguments apart, runs one command and returns the exit code (exit_code.h). An error is
// one line on stderr. Results go to stdout, everything else to stderr.
int run_command_line(int argc, const char* const* argv);

}  // namespace orrery
