// Knows how a result reaches stdout.
#pragma once

#include <string>

#include "sim/app/command.h"
#include "sim/app/document.h"

namespace orrery {

// Writes all of it. MachineFailed where stdout takes no more.
void write_result(const std::string& text);

// `code`, or that of the signal which ended the work early.
ExitCode unless_stopped(ExitCode code);

// The document in the form that was asked for.
std::string page(const Document& document, const CommonFlags& common);

}  // namespace orrery
