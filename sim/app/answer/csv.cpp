// SPDX-License-Identifier: Apache-2.0
// Writes answers as rows of flat columns.
#include "sim/app/answer/csv.h"

#include <fmt/format.h>

#include <vector>

#include "sim/app/answer/columns.h"

namespace orrery {
namespace {

std::string row_text(const std::vector<FlatColumn>& columns, const Json& row,
                     const std::string& error) {
  std::string text;
  for (const FlatColumn& column : columns)
    text += csv_cell(flat_text(flat_value(column, row))) + ",";
  return text + csv_cell(error) + "\n";
}

}  // namespace

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_header(const std::string& command, bool lines) {
  std::string text = lines ? "line," : "";
  for (const FlatColumn& column : flat_columns(command)) text += column.name + ",";
  return text + "error\n";
}

std::vector<std::string> csv_row_texts(const std::string& command, const Json& answer) {
  const std::vector<FlatColumn> columns = flat_columns(command);
  if (answer.contains("error")) return {row_text(columns, Json::object(), error_sentence(answer))};
  std::vector<std::string> rows;
  for_each_row(command, answer,
               [&](const Json& row) { rows.push_back(row_text(columns, row, "")); });
  return rows;
}

std::string csv_numbered(const std::string& row, std::int64_t line) {
  return fmt::format("{},{}", line, row);
}

std::string csv_rows(const std::string& command, const Json& answer,
                     std::optional<std::int64_t> line) {
  std::string text;
  for (const std::string& row : csv_row_texts(command, answer))
    text += line ? csv_numbered(row, *line) : row;
  return text;
}

}  // namespace orrery
