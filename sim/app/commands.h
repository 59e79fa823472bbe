// Knows the commands of the binary and their flags.
#pragma once

namespace orrery {

// Parses the arguments, runs one command and returns the exit code (exit_code.h). An error is one
// line on stderr. Results go to stdout, everything else to stderr.
int run_command_line(int argc, const char* const* argv);

}  // namespace orrery
