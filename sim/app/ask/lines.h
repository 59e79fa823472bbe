// SPDX-License-Identifier: Apache-2.0
// Knows how many questions are answered in one run: a line of JSON each, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/app/answer/exit_code.h"
#include "sim/base/json/json.h"

namespace orrery {

struct LinesOptions {
  std::string file;         // "-": stdin
  int threads = 0;          // 0: all cores
  std::size_t at_once = 1;  // lines that are read before their answers are written
};

// The answer to one line, from any thread. What it throws as an Error becomes the line's answer.
using AnswerLine = std::function<Json(const JsonValue& line)>;
// How the answer to a line (counted from 1), or an error, is written; on any thread.
using LineText = std::function<std::string(std::int64_t line, const Json& answer)>;

// Answers every line, each on its own. A line that is no question is answered by an error object
// with its number, and the rest go on: check_failed at the end. After Ctrl-C what is ready in order
// has been written: interrupted.
ExitCode answer_lines(const LinesOptions& options, const AnswerLine& answer, const LineText& text);

}  // namespace orrery
