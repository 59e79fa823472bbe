// SPDX-License-Identifier: Apache-2.0
// Answers machines: one question as JSON or as rows, or many of them line by line.
#include "sim/app/ask/lines_command.h"

#include <algorithm>

#include "sim/app/answer/csv.h"
#include "sim/app/ask/answers.h"
#include "sim/app/ask/lines.h"
#include "sim/app/line/result.h"
#include "sim/base/content_hash.h"
#include "sim/base/parallel.h"
#include "sim/question/settings/inline_files.h"
#include "sim/question/settings/settings.h"

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

// What is asked of each line beside its own words.
struct AskedOfLines {
  std::string command;
  bool csv = false;
  std::optional<std::uint64_t> seed;
  AnswerQuestion answer;
};

LineForm form_of(const AskedOfLines& asked) {
  const auto row = [command = asked.command](std::int64_t line, const Json& error) {
    return csv_rows(command, error, line);
  };
  if (!asked.csv)
    return {.kept = [](const Json& answer) { return answer.dump(); },
            .shown = [](std::int64_t, const std::string& kept) { return kept + "\n"; },
            .error = [](std::int64_t, const Json& error) { return json_line(error); }};
  return {.kept = [command = asked.command](
                      const Json& answer) { return Json(csv_row_texts(command, answer)).dump(); },
          .shown =
              [](std::int64_t line, const std::string& kept) {
                std::string text;
                for (const Json& one : Json::parse(kept)) text += csv_numbered(one.text(), line);
                return text;
              },
          .error = row};
}

ExitCode answer_all(const AskedOfLines& asked, LinesOptions options,
                    const std::function<JsonValue(const JsonValue& line)>& question_of) {
  if (asked.csv && goes_on(options.tasks)) write_result(csv_header(asked.command, true));
  options.at_once = lines_at_once(asked.command, options.threads);
  Catalogues catalogues;
  // Lines share the cores; one question among them takes no more than its own.
  const AskedWith with{.catalogues = catalogues, .seed = asked.seed, .threads = 1};
  return answer_lines(
      options,
      [&](const JsonValue& line) {
        const JsonValue question = question_of(line);
        if (asked.answer) return asked.answer(question, with);
        return answer_for_machines(asked.command, question, with).json;
      },
      form_of(asked));
}

SharedRun run_of_lines(const std::string& command, const Given& given, const CommonFlags& common,
                       const SortedJson& flags) {
  const std::string file = given.place(lines_flag);
  if (file == "-")
    throw Error({.file = lines_flag,
                 .found = "stdin beside --results",
                 .expected = "a file: every shard reads it, and so does `orrery merge`"});
  const JsonValue asked = JsonValue::from(flags, command_line_place);
  return {.command = command,
          .name = file,
          .form = given.has(csv_flag) ? ResultForm::rows : ResultForm::lines,
          .seed = common.seed,
          .question = {{"flags", with_files_inline(asked).value_or(asked).raw()},
                       {"lines", hash_text(file_hash(file))}}};
}

}  // namespace

Flag lines_flag_of(const std::string& more) {
  return {lines_flag, "FILE", output_group,
          "answer a question of each line of this file (-: stdin), JSON like a file of settings; "
          "one line of JSON each, in order; flags win over lines" +
              more,
          "file"};
}

std::vector<Flag> machine_flags() {
  return {lines_flag_of("; without reasons unless a line says \"reasons\": true"),
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
                         const SortedJson& flags, const QuestionOfLine& question_of,
                         const AnswerQuestion& answer) {
  refuse_beside(given, lines_flag, {"--markdown", "--html", "--plots"});
  refuse_beside(given, csv_flag, {"--json"});
  if (!given.words.empty())
    throw Error({.file = lines_flag,
                 .found = in_quotes(given.word(0)) + " beside it",
                 .expected = "lines of questions, or one question"});
  const std::string file = given.place(lines_flag);
  if (is_shared(given)) {
    const SharedRun run = run_of_lines(command, given, common, flags);
    return begin_shared(given, run, file, [&](SharedWork& work) {
      return share_lines(run, work, given, question_of, answer);
    });
  }
  return answer_all(
      {.command = command, .csv = given.has(csv_flag), .seed = common.seed, .answer = answer},
      {.file = file, .threads = common.threads},
      [&](const JsonValue& line) { return question_of(line, flags); });
}

ExitCode share_lines(const SharedRun& run, SharedWork& work, const Given& given,
                     const QuestionOfLine& question_of, const AnswerQuestion& answer) {
  for (const char* flag : {"--markdown", "--html", "--plots"})
    if (given.has(flag))
      throw Error({.file = flag, .found = "answers of many lines", .expected = "one answer"});
  const CommonFlags common = common_of(given);
  const SortedJson& flags = run.question.at("flags");
  const ExitCode code = answer_all({.command = run.command,
                                    .csv = run.form == ResultForm::rows,
                                    .seed = run.seed,
                                    .answer = answer},
                                   {.file = lines_file(work.folder()).string(),
                                    .name = run.name,
                                    .threads = common.threads,
                                    .tasks = &work},
                                   [&](const JsonValue& line) { return question_of(line, flags); });
  return work.whole() ? code : end_part(work, common);
}

}  // namespace orrery
