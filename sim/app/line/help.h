// SPDX-License-Identifier: Apache-2.0
// Knows how commands are explained on a terminal.
#pragma once

#include "sim/app/line/command.h"
#include "sim/paper/tables.h"

namespace orrery {

struct FlagGroup {
  std::string heading;
  std::vector<Flag> flags;
};
// A command's flags by heading, in the order in which headings first come; common ones at the end.
std::vector<FlagGroup> flag_groups(const Command& command);

// "orrery simulate [FLAGS] [file]".
std::string usage(const Command& command);

// One meaning of an exit code, for people.
struct ExitMeaning {
  ExitCode code;
  const char* meaning;
};
std::vector<ExitMeaning> exit_meanings();

std::string help_text(const std::vector<Command>& commands, std::size_t width = page_width);
std::string help_text(const Command& command, std::size_t width = page_width);

}  // namespace orrery
