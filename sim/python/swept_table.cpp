// SPDX-License-Identifier: Apache-2.0
// Fills the columns of a table of answers.
#include "sim/python/swept_table.h"

#include <algorithm>

namespace orrery {
namespace {

// What the columns of errors are called, and where an error holds them.
const std::vector<FlatColumn>& error_columns() {
  static const std::vector<FlatColumn> all = {
      {"error_path", "error/path", ColumnKind::text},
      {"error_found", "error/found", ColumnKind::text},
      {"error_expected", "error/expected", ColumnKind::text}};
  return all;
}

}  // namespace

TableOfAnswers::TableOfAnswers(const std::string& command, const std::vector<AskedColumn>& asked,
                               const std::vector<std::string>& left_out)
    : answers_(flat_columns(command)) {
  std::erase_if(answers_, [&](const FlatColumn& column) {
    return std::find(left_out.begin(), left_out.end(), column.name) != left_out.end();
  });
  for (const AskedColumn& column : asked) {
    asked_.push_back({column.name, column.name, column.kind});
    table_.columns.emplace_back(column.name, column.kind);
  }
  for (const FlatColumn& column : answers_) table_.columns.emplace_back(column.name, column.kind);
  table_.columns.emplace_back("error", ColumnKind::text);
  for (const FlatColumn& column : error_columns())
    table_.columns.emplace_back(column.name, column.kind);
}

void TableOfAnswers::add(const SweptRow& row) {
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

}  // namespace orrery
