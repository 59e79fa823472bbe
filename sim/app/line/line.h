// SPDX-License-Identifier: Apache-2.0
// Knows how a command line is taken apart by the table of commands.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

struct ParsedLine {
  const Command* command = nullptr;  // nullptr: none was named
  bool help = false, version = false;
  std::string shell_files = {};  // the folder that --shell-files names
  Given given;
};

// Errors name the word that nothing takes, with the nearest flag or command. A line that asks for
// help or for the version is not judged beyond that.
ParsedLine parse_line(const std::vector<std::string>& words, const std::vector<Command>& commands);

// "advise, simulate or plan".
std::string names_of(const std::vector<Command>& commands);

}  // namespace orrery
