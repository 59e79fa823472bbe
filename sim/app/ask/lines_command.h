// SPDX-License-Identifier: Apache-2.0
// Knows the flags with which commands answer machines: many questions, flat rows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/answer/exit_code.h"
#include "sim/app/line/command.h"
#include "sim/app/shards/sharing.h"
#include "sim/base/json/json.h"
#include "sim/question/ask.h"

namespace orrery {

inline constexpr const char* lines_flag = "--jsonl";
Flag lines_flag_of(const std::string& more = "");  // `more`: to its help
std::vector<Flag> machine_flags();

// The answer in the form for machines that was asked for; nothing where it is for people.
std::optional<std::string> text_for_machines(const std::string& command, const Given& given,
                                             const std::function<Json()>& answer);

// A line with what flags say over it.
using QuestionOfLine = std::function<JsonValue(const JsonValue& line, const SortedJson& flags)>;

// The answer to a question, on any thread; empty: that of simulate, advise or plan.
using AnswerQuestion = std::function<Json(const JsonValue& question, const AskedWith& with)>;

// Answers every line of the file that --jsonl names.
ExitCode answer_lines_of(const std::string& command, const Given& given, const CommonFlags& common,
                         const SortedJson& flags, const QuestionOfLine& question_of,
                         const AnswerQuestion& answer = {});

// The same of lines that processes share.
ExitCode share_lines(const SharedRun& run, SharedWork& work, const Given& given,
                     const QuestionOfLine& question_of, const AnswerQuestion& answer = {});

}  // namespace orrery
