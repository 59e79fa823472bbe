// SPDX-License-Identifier: Apache-2.0
// Knows how many questions are answered in one run: a line of JSON each, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/app/answer/exit_code.h"
#include "sim/base/json/json.h"
#include "sim/base/tasks/tasks.h"

namespace orrery {

struct LinesOptions {
  std::string file;         // "-": stdin
  std::string name = {};    // in messages, where it is not the file's own
  int threads = 0;          // 0: all cores
  std::size_t at_once = 1;  // lines that are read before their answers are written
  Tasks* tasks = nullptr;   // where processes share the lines; each is a task
};

// The answer to one line, from any thread. What it throws as an Error becomes the line's answer;
// a MachineFailed ends all where lines are shared: another process may have better luck.
using AnswerLine = std::function<Json(const JsonValue& line)>;

// How answers are written: as a value on one line that does not know the line's number (two lines
// with one text have one), and from that, with the number (from 1), as text of stdout. On any
// thread. Errors are written as `error`.
struct LineForm {
  std::function<std::string(const Json& answer)> kept;
  std::function<std::string(std::int64_t line, const std::string& kept)> shown;
  std::function<std::string(std::int64_t line, const Json& error)> error;
};

// Answers every line, each on its own. A line that is no question is answered by an error object
// with its number, and the rest go on: check_failed at the end. After Ctrl-C what is ready in order
// has been written: interrupted. Where `tasks` is a part, nothing is written.
ExitCode answer_lines(const LinesOptions& options, const AnswerLine& answer, const LineForm& form);

}  // namespace orrery
