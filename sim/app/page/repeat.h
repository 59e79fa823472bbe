// SPDX-License-Identifier: Apache-2.0
// Says how an answer is had again: the line that asks it, its question, and what answered.
#pragma once

#include <string>

#include "sim/base/json/json.h"
#include "sim/paper/document.h"

namespace orrery {

// "orrery simulate --model llama3-8b ...", for a shell. Values that are no plain text are JSON in
// quotes.
std::string command_line(const std::string& command, const JsonValue& question);

Document repeat_document(const JsonValue& answer);

}  // namespace orrery
