// SPDX-License-Identifier: Apache-2.0
// Knows how a result reaches stdout.
#pragma once

#include <string>

#include "sim/app/line/command.h"
#include "sim/paper/document.h"

namespace orrery {

// Writes all of it. MachineFailed where stdout takes no more.
void write_result(const std::string& text);
// The same of what a command came to; its exit code.
ExitCode write_result(const Printed& printed);

// Columns of the terminal that stdout is: COLUMNS or what it says itself, from 80 to 140. Elsewhere
// page_width, so that files and pipes get the same bytes everywhere.
std::size_t terminal_width();

// `code`, or that of the signal which ended the work early.
ExitCode unless_stopped(ExitCode code);

// The document in the form that was asked for.
std::string page(const Document& document, const CommonFlags& common);

}  // namespace orrery
