// SPDX-License-Identifier: Apache-2.0
// Runs sweeps: some thousand questions at a time, side by side.
#include "sim/python/sweep.h"

#include <algorithm>

#include "sim/app/answer/failure.h"
#include "sim/app/ask/answers.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"
#include "sim/python/swept_table.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

constexpr std::size_t at_once = 2048;
constexpr const char* command = "simulate";

Json not_run() {
  return error_json({.file = "sweep", .found = "a stop before its turn"}, "stopped");
}

SweptRow answer_row(const std::string& text, std::int64_t number, const AskedWith& with) {
  SweptRow row;
  try {
    const JsonValue question = JsonValue::parse(text, "row " + std::to_string(number));
    row.question = Json(question.raw());
    row.answer = answer_for_machines(command,
                                     merge_line(question, SortedJson::object(),
                                                {"trace_out", "chakra_out"}, {{"reasons", false}}),
                                     with)
                     .json;
  } catch (const Error& error) {
    row.answer = error_json(error.info(), kind_of(error));
  }
  return row;
}

}  // namespace

Swept sweep(const std::vector<std::string>& questions, const SweepHow& how) {
  std::optional<InterruptWatch> watch;
  if (how.watch) watch.emplace();
  Catalogues catalogues;
  const AskedWith with{.catalogues = catalogues, .seed = how.seed, .threads = 1};
  TableOfAnswers table(command, how.asked);
  for (std::size_t from = 0; from < questions.size(); from += at_once) {
    std::vector<SweptRow> rows(std::min(at_once, questions.size() - from));
    parallel_for(rows.size(), how.threads, [&](std::size_t i) {
      rows[i] = interrupted() ? SweptRow{.answer = not_run()}
                              : answer_row(questions[from + i],
                                           how.first + static_cast<std::int64_t>(from + i), with);
    });
    for (const SweptRow& row : rows) table.add(row);
    if (how.progress) how.progress(static_cast<std::int64_t>(from + rows.size()));
  }
  return {.table = table.take(), .stopped = interrupted()};
}

}  // namespace orrery
