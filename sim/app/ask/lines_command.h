// SPDX-License-Identifier: Apache-2.0
// Knows the flags with which simulate, advise and plan answer machines: many questions, flat rows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/answer/exit_code.h"
#include "sim/app/line/command.h"
#include "sim/base/json/json.h"

namespace orrery {

inline constexpr const char* lines_flag = "--jsonl";
std::vector<Flag> machine_flags();

// The answer in the form for machines that was asked for; nothing where it is for people.
std::optional<std::string> text_for_machines(const std::string& command, const Given& given,
                                             const std::function<Json()>& answer);

// Answers every line of the file that --jsonl names. `question_of`: a line with the flags over it.
ExitCode answer_lines_of(const std::string& command, const Given& given, const CommonFlags& common,
                         const std::function<JsonValue(const JsonValue& line)>& question_of);

}  // namespace orrery
