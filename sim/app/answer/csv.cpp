// SPDX-License-Identifier: Apache-2.0
// Writes answers as rows of flat columns.
#include "sim/app/answer/csv.h"

#include <fmt/format.h>

#include <vector>

#include "sim/app/answer/answer.h"
#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// `place` is where the value stands: in the answer, or ("row/...") in the row's own part of it.
struct Column {
  std::string name, place;
};

void add_layout(std::vector<Column>& columns, const std::string& above) {
  const Json keys = layout_json(Layout{});
  for (const auto& [key, value] : keys.items()) columns.push_back({key, above + "layout/" + key});
}

void add(std::vector<Column>& columns, const std::string& above,
         std::initializer_list<const char*> keys) {
  for (const char* key : keys) columns.push_back({key, above + key});
}

std::vector<Column> job_columns() {
  std::vector<Column> columns;
  add(columns, "question/", {"seq", "global_batch", "batch", "context"});
  return columns;
}

std::vector<Column> simulate_columns() {
  std::vector<Column> columns;
  add(columns, "", {"model", "cluster", "accelerator", "gpus", "stack", "task"});
  for (Column& column : job_columns()) columns.push_back(std::move(column));
  add_layout(columns, "");
  add(columns, "prediction/",
      {"step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s", "tokens_per_s_per_gpu",
       "mfu", "hfu", "energy_per_step_j", "energy_per_token_j", "mean_power_per_gpu_w",
       "cost_per_step_usd", "cost_per_million_tokens_usd"});
  add(columns, "prediction/memory/",
      {"allocated_bytes", "reserved_bytes", "needed_bytes", "capacity_bytes"});
  add(columns, "verdict/", {"fits", "runs", "probability", "why"});
  return columns;
}

std::vector<Column> advise_columns() {
  std::vector<Column> columns;
  add(columns, "", {"model", "cluster", "gpus", "stack"});
  for (Column& column : job_columns()) columns.push_back(std::move(column));
  columns.push_back({"rank", "rank"});
  add_layout(columns, "row/");
  add(columns, "row/",
      {"step_time_s", "tokens_per_s_per_gpu", "energy_per_step_j", "peak_memory_bytes"});
  add(columns, "verdict/", {"fits", "runs", "probability", "why"});
  return columns;
}

std::vector<Column> plan_columns() {
  std::vector<Column> columns;
  columns.push_back({"point", "rank"});
  add(columns, "row/", {"model", "cluster", "values", "gpus", "fits", "feasible", "why_not"});
  add_layout(columns, "row/");
  add(columns, "row/",
      {"step_time_s",
       "tokens_per_s",
       "mfu",
       "peak_memory_bytes",
       "effective",
       "tokens",
       "flop",
       "duration_s",
       "finish_s",
       "spares",
       "bought",
       "cost_usd",
       "capital_usd",
       "running_per_year_usd",
       "cost_per_million_tokens_usd",
       "energy_j",
       "carbon_kg",
       "facility_peak_w",
       "facility_mean_w",
       "racks",
       "white_space_m2",
       "binding"});
  return columns;
}

std::vector<Column> columns_of(const std::string& command) {
  if (command == "simulate") return simulate_columns();
  if (command == "advise") return advise_columns();
  return plan_columns();
}

std::string cell(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string() && !value.is_structured()) return value.dump();
  std::string text = value.is_string() ? value.get<std::string>() : "";
  if (value.is_object())
    for (const auto& [key, one] : value.items())
      text += (text.empty() ? "" : "; ") + key + " " +
              (one.is_string() ? one.get<std::string>() : one.dump());
  if (value.is_array())
    for (const Json& one : value)
      text += (text.empty() ? "" : ",") + (one.is_string() ? one.get<std::string>() : one.dump());
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

Json value_at(const Json& answer, const std::string& place) {
  const Json* value = answer.find_path(place);
  return value ? *value : Json(nullptr);
}

// What an error says, in one sentence.
std::string error_text(const Json& answer) {
  const Json& e = answer.at("error");
  const auto text = [&](const char* key) {
    return e.at(key).is_string() ? e.at(key).get<std::string>() : std::string();
  };
  return Error({.file = text("file"),
                .path = text("path"),
                .found = text("found"),
                .expected = text("expected"),
                .nearest = text("nearest")})
      .message();
}

std::string row_text(const std::vector<Column>& columns, const Json& answer,
                     std::optional<std::int64_t> line, const std::string& error) {
  std::string text = line ? fmt::format("{},", *line) : "";
  for (const Column& column : columns) text += cell(value_at(answer, column.place)) + ",";
  return text + cell(error) + "\n";
}

}  // namespace

std::string csv_header(const std::string& command, bool lines) {
  std::string text = lines ? "line," : "";
  for (const Column& column : columns_of(command)) text += column.name + ",";
  return text + "error\n";
}

std::string csv_rows(const std::string& command, const Json& answer,
                     std::optional<std::int64_t> line) {
  const std::vector<Column> columns = columns_of(command);
  if (answer.contains("error")) return row_text(columns, Json::object(), line, error_text(answer));
  if (command == "simulate") return row_text(columns, answer, line, "");
  Json one = answer;
  std::string text;
  const Json& rows = answer.at(command == "advise" ? "best" : "points");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    one["rank"] = i + 1;
    one["row"] = rows[i];
    text += row_text(columns, one, line, "");
  }
  if (rows.empty()) text += row_text(columns, answer, line, "");
  return text;
}

}  // namespace orrery
