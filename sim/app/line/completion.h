// SPDX-License-Identifier: Apache-2.0
// Knows how shells complete the command line.
#pragma once

#include <filesystem>

#include "sim/app/line/command.h"

namespace orrery {

// Scripts for bash and zsh. Names of the catalogue are asked of the program when they are needed.
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);

// Writes both and the manual pages where `share` of an installation has them.
void write_shell_files(const std::vector<Command>& commands, const std::filesystem::path& share);

}  // namespace orrery
