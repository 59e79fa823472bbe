// SPDX-License-Identifier: Apache-2.0
// Writes answers as rows of flat columns.
#include "sim/app/answer/csv.h"

#include <fmt/format.h>

#include <vector>

#include "sim/app/answer/columns.h"

namespace orrery {
namespace {

std::string quoted_if_needed(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string row_text(const std::vector<FlatColumn>& columns, const Json& row,
                     std::optional<std::int64_t> line, const std::string& error) {
  std::string text = line ? fmt::format("{},", *line) : "";
  for (const FlatColumn& column : columns)
    text += quoted_if_needed(flat_text(flat_value(column, row))) + ",";
  return text + quoted_if_needed(error) + "\n";
}

}  // namespace

std::string csv_header(const std::string& command, bool lines) {
  std::string text = lines ? "line," : "";
  for (const FlatColumn& column : flat_columns(command)) text += column.name + ",";
  return text + "error\n";
}

std::string csv_rows(const std::string& command, const Json& answer,
                     std::optional<std::int64_t> line) {
  const std::vector<FlatColumn> columns = flat_columns(command);
  if (answer.contains("error"))
    return row_text(columns, Json::object(), line, error_sentence(answer));
  std::string text;
  for_each_row(command, answer, [&](const Json& row) { text += row_text(columns, row, line, ""); });
  return text;
}

}  // namespace orrery
