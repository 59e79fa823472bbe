// SPDX-License-Identifier: Apache-2.0
// Knows how commands are explained in manual pages.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

// roff for man(1): that of the program, and that of one command.
std::string man_page(const std::vector<Command>& commands);
std::string man_page(const Command& command);

}  // namespace orrery
