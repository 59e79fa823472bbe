// SPDX-License-Identifier: Apache-2.0
// Answers machines: one question as JSON or as rows, or many of them line by line.
#include "sim/app/ask/lines_command.h"

#include <algorithm>

#include "sim/app/answer/csv.h"
#include "sim/app/ask/answers.h"
#include "sim/app/ask/lines.h"
#include "sim/app/line/result.h"
#include "sim/base/parallel.h"

namespace orrery {
namespace {

constexpr const char* csv_flag = "--csv";

void refuse_beside(const Given& given, const char* flag,
                   std::initializer_list<const char*> others) {
  for (const char* other : others)
    if (given.has(flag) && given.has(other))
      throw Error(
          {.file = flag, .found = std::string(other) + " too", .expected = "one of the two"});
}

// Lines that are answered side by side: many that are quick, few that search long, so that answers
// come while the next ones are sought.
std::size_t lines_at_once(const std::string& command, int threads) {
  const auto workers = static_cast<std::size_t>(threads > 0 ? threads : hardware_threads());
  constexpr std::size_t quick = 1024, searches = 4;
  return command == "simulate" ? quick : searches * workers;
}

}  // namespace

std::vector<Flag> machine_flags() {
  return {{lines_flag, "FILE", output_group,
           "answer a question of each line of this file (-: stdin), JSON like a file of settings; "
           "one line of JSON each, in order; flags win over lines; without reasons unless a line "
           "says \"reasons\": true",
           "file"},
          {csv_flag, "", output_group, "print rows of flat columns"}};
}

std::optional<std::string> text_for_machines(const std::string& command, const Given& given,
                                             const std::function<Json()>& answer) {
  refuse_beside(given, csv_flag, {"--json", "--markdown"});
  if (given.has(csv_flag)) return csv_header(command, false) + csv_rows(command, answer(), {});
  if (given.has("--json")) return indented_text(answer());
  return std::nullopt;
}

ExitCode answer_lines_of(const std::string& command, const Given& given, const CommonFlags& common,
                         const std::function<JsonValue(const JsonValue& line)>& question_of) {
  refuse_beside(given, lines_flag, {"--markdown", "--html", "--plots"});
  refuse_beside(given, csv_flag, {"--json"});
  if (!given.words.empty())
    throw Error({.file = lines_flag,
                 .found = in_quotes(given.word(0)) + " beside it",
                 .expected = "lines of questions, or one question"});
  const bool csv = given.has(csv_flag);
  if (csv) write_result(csv_header(command, true));
  Catalogues catalogues;
  // Lines share the cores; one question among them takes no more than its own.
  const AskedWith with{.catalogues = catalogues, .seed = common.seed, .threads = 1};
  return answer_lines(
      {.file = given.place(lines_flag),
       .threads = common.threads,
       .at_once = lines_at_once(command, common.threads)},
      [&](const JsonValue& line) {
        return answer_for_machines(command, question_of(line), with).json;
      },
      [&](std::int64_t line, const Json& answer) {
        return csv ? csv_rows(command, answer, line) : json_line(answer);
      });
}

}  // namespace orrery
