// SPDX-License-Identifier: Apache-2.0
// Runs sweeps: some thousand questions at a time, side by side.
#include "sim/python/sweep.h"

#include <algorithm>

#include "sim/app/answer/failure.h"
#include "sim/app/ask/answers.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

constexpr std::size_t at_once = 2048;
constexpr const char* command = "simulate";

// What the columns of errors are called, and where an error holds them.
const std::vector<FlatColumn>& error_columns() {
  static const std::vector<FlatColumn> all = {
      {"error_path", "error/path", ColumnKind::text},
      {"error_found", "error/found", ColumnKind::text},
      {"error_expected", "error/expected", ColumnKind::text}};
  return all;
}

// One question, and its answer or error.
struct SweptRow {
  Json question = nullptr, answer = nullptr;
};

Json not_run() {
  return error_json({.file = "sweep", .found = "a stop before its turn"}, "stopped");
}

SweptRow answer_row(const std::string& text, std::size_t number, const AskedWith& with) {
  SweptRow row;
  try {
    const JsonValue question = JsonValue::parse(text, "row " + std::to_string(number));
    row.question = Json(question.raw());
    row.answer =
        answer_for_machines(
            command,
            merge_line(question, SortedJson::object(), {"trace_out"}, {{"reasons", false}}), with)
            .json;
  } catch (const Error& error) {
    row.answer = error_json(error.info(), kind_of(error));
  }
  return row;
}

class TableOfAnswers {
 public:
  explicit TableOfAnswers(const std::vector<AskedColumn>& asked) : answers_(flat_columns(command)) {
    for (const AskedColumn& column : asked) {
      asked_.push_back({column.name, column.name, column.kind});
      table_.columns.emplace_back(column.name, column.kind);
    }
    for (const FlatColumn& column : answers_) table_.columns.emplace_back(column.name, column.kind);
    table_.columns.emplace_back("error", ColumnKind::text);
    for (const FlatColumn& column : error_columns())
      table_.columns.emplace_back(column.name, column.kind);
  }

  void add(const SweptRow& row) {
    std::size_t at = 0;
    const bool failed = row.answer.contains("error");
    const auto asked = [&](const std::string& key) {
      const bool there = row.question.is_object() && row.question.contains(key);
      return there ? row.question.at(key) : Json(nullptr);
    };
    for (const FlatColumn& column : asked_) table_.columns[at++].add(asked(column.name));
    // Of a question that is no good its own words tell which one it was.
    for (const FlatColumn& column : answers_)
      table_.columns[at++].add(failed ? asked(column.name) : flat_value(column, row.answer));
    table_.columns[at++].add(failed ? Json(error_sentence(row.answer)) : Json(nullptr));
    for (const FlatColumn& column : error_columns())
      table_.columns[at++].add(flat_value(column, row.answer));
  }

  std::shared_ptr<const AnswerTable> take() {
    return std::make_shared<const AnswerTable>(std::move(table_));
  }

 private:
  std::vector<FlatColumn> asked_, answers_;
  AnswerTable table_;
};

}  // namespace

Swept sweep(const std::vector<std::string>& questions, const SweepHow& how) {
  std::optional<InterruptWatch> watch;
  if (how.watch) watch.emplace();
  Catalogues catalogues;
  const AskedWith with{.catalogues = catalogues, .seed = how.seed, .threads = 1};
  TableOfAnswers table(how.asked);
  for (std::size_t from = 0; from < questions.size(); from += at_once) {
    std::vector<SweptRow> rows(std::min(at_once, questions.size() - from));
    parallel_for(rows.size(), how.threads, [&](std::size_t i) {
      rows[i] = interrupted() ? SweptRow{.answer = not_run()}
                              : answer_row(questions[from + i], from + i + 1, with);
    });
    for (const SweptRow& row : rows) table.add(row);
    if (how.progress) how.progress(static_cast<std::int64_t>(from + rows.size()));
  }
  return {.table = table.take(), .stopped = interrupted()};
}

}  // namespace orrery
