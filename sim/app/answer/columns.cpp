// SPDX-License-Identifier: Apache-2.0
// Lists the flat columns of answers and finds their values.
#include "sim/app/answer/columns.h"

#include "sim/app/answer/answer.h"
#include "sim/base/append.h"
#include "sim/base/errors/check.h"

namespace orrery {
namespace {

using enum ColumnKind;
using Names = std::initializer_list<const char*>;

std::vector<FlatColumn> columns(ColumnKind kind, const std::string& above, Names names) {
  std::vector<FlatColumn> all;
  for (const char* name : names) all.push_back({name, above + name, kind});
  return all;
}

std::vector<FlatColumn> layout_columns(const std::string& above) {
  std::vector<FlatColumn> all;
  const Json keys = layout_json(Layout{});
  for (const auto& [key, value] : keys.items())
    all.push_back({key, above + "layout/" + key,
                   value.is_boolean()          ? truth
                   : value.is_number_integer() ? whole
                   : value.is_number()         ? number
                                               : text});
  return all;
}

std::vector<FlatColumn> joined(std::initializer_list<std::vector<FlatColumn>> parts) {
  std::vector<FlatColumn> all;
  for (std::vector<FlatColumn> part : parts) append(all, std::move(part));
  return all;
}

std::vector<FlatColumn> job_columns() {
  return columns(whole, "question/", {"seq", "global_batch", "batch", "context"});
}

std::vector<FlatColumn> verdict_columns() {
  return joined({columns(truth, "verdict/", {"fits", "runs"}),
                 columns(number, "verdict/", {"probability"}), columns(text, "verdict/", {"why"})});
}

std::vector<FlatColumn> simulate_columns() {
  return joined(
      {columns(text, "", {"model", "cluster", "accelerator"}), columns(whole, "", {"gpus"}),
       columns(text, "", {"stack", "task"}), job_columns(), layout_columns(""),
       columns(number, "prediction/",
               {"step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s",
                "tokens_per_s_per_gpu", "mfu", "hfu", "energy_per_step_j", "energy_per_token_j",
                "mean_power_per_gpu_w", "cost_per_step_usd", "cost_per_million_tokens_usd"}),
       columns(number, "prediction/memory/",
               {"allocated_bytes", "reserved_bytes", "needed_bytes", "capacity_bytes"}),
       verdict_columns()});
}

std::vector<FlatColumn> advise_columns() {
  return joined(
      {columns(text, "", {"model", "cluster"}), columns(whole, "", {"gpus"}),
       columns(text, "", {"stack"}), job_columns(), columns(whole, "", {"rank"}),
       layout_columns("row/"),
       columns(number, "row/",
               {"step_time_s", "tokens_per_s_per_gpu", "energy_per_step_j", "peak_memory_bytes"}),
       verdict_columns()});
}

std::vector<FlatColumn> plan_columns() {
  return joined(
      {{{"point", "rank", whole}},
       columns(text, "row/", {"model", "cluster", "values"}),
       columns(whole, "row/", {"gpus"}),
       columns(truth, "row/", {"fits", "feasible"}),
       columns(text, "row/", {"why_not"}),
       layout_columns("row/"),
       columns(number, "row/",
               {"step_time_s", "tokens_per_s", "mfu", "peak_memory_bytes", "effective", "tokens",
                "flop", "duration_s", "finish_s"}),
       columns(whole, "row/", {"spares", "bought"}),
       columns(number, "row/",
               {"cost_usd", "capital_usd", "running_per_year_usd", "cost_per_million_tokens_usd",
                "energy_j", "carbon_kg", "facility_peak_w", "facility_mean_w"}),
       columns(whole, "row/", {"racks"}),
       columns(number, "row/", {"white_space_m2"}),
       columns(text, "row/", {"binding"})});
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::vector<FlatColumn> flat_columns(const std::string& command) {
  if (command == "simulate") return simulate_columns();
  if (command == "advise") return advise_columns();
  return plan_columns();
}

void for_each_row(const std::string& command, const Json& answer,
                  const std::function<void(const Json& row)>& take) {
  if (command == "simulate") return take(answer);
  const Json& rows = answer.at(command == "advise" ? "best" : "points");
  if (rows.empty()) return take(answer);
  Json one = answer;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    one["rank"] = i + 1;
    one["row"] = rows[i];
    take(one);
  }
}

Json flat_value(const FlatColumn& column, const Json& row) {
  const Json* value = row.find_path(column.place);
  return value ? *value : Json(nullptr);
}

std::string flat_text(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_structured()) return plain_text(value);
  std::string text;
  if (value.is_object())
    for (const auto& [key, one] : value.items())
      text += (text.empty() ? "" : "; ") + key + " " + plain_text(one);
  else
    for (const Json& one : value) text += (text.empty() ? "" : ",") + plain_text(one);
  return text;
}

std::string error_sentence(const Json& error_answer) {
  const Json& e = error_answer.at("error");
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

}  // namespace orrery
