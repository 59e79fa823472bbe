// SPDX-License-Identifier: Apache-2.0
// Draws predictions against measurements: value by value, errors by size, and errors by group.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/app/charts/charts.h"
#include "sim/app/charts/spec.h"
#include "sim/base/sorting.h"
#include "sim/base/statistics.h"

namespace orrery {
namespace {

constexpr std::size_t most_colours = 6;  // those with most rows; the rest share one
constexpr std::size_t most_groups = 24;  // of bars
constexpr std::size_t least_rows = 3;    // of a group that is shown
constexpr const char* speed = "tokens_s_gpu";

struct Measured {
  Json values = Json::array();
  double low = INFINITY, high = 0;
  std::string unit;
};

// A row that was predicted and measured.
struct Row {
  std::string id, quantity, gpu, source, stack, precision;
  double predicted = 0, measured = 0, gpus = 0;
  double percent() const { return 100 * (predicted / measured - 1); }
};

std::string text_at(const std::optional<JsonValue>& object, const char* key) {
  const auto value = object ? object->find(key) : std::nullopt;
  return value ? value->text() : "";
}

double gpus_of(const JsonValue& layout) {
  double gpus = 1;
  for (const char* key : {"tp", "pp", "dp", "cp"}) gpus *= layout.at(key).number();
  return gpus;
}

std::vector<Row> rows_of(const JsonValue& answer) {
  std::vector<Row> rows;
  for (const JsonValue& row : answer.at("rows").items()) {
    const auto predicted = row.find("predicted"), measured = row.find("measured");
    if (!predicted || !measured || !row.has("quantity")) continue;
    if (is_verdict(row.at("quantity").text())) continue;
    if (predicted->number() <= 0 || measured->number() <= 0) continue;
    const auto group = row.find("group"), layout = row.find("layout"), stack = row.find("stack");
    rows.push_back({.id = row.at("id").text(),
                    .quantity = row.at("quantity").text(),
                    .gpu = text_at(group, "gpu"),
                    .source = text_at(group, "source"),
                    .stack = stack ? stack->text() : "",
                    .precision = text_at(layout, "precision"),
                    .predicted = predicted->number(),
                    .measured = measured->number(),
                    .gpus = layout ? gpus_of(*layout) : 0});
  }
  return rows;
}

// The GPUs that most rows are of, by name; others are "others".
std::map<std::string, std::string> colour_names(const std::vector<Row>& rows) {
  std::map<std::string, std::size_t> counts;
  for (const Row& row : rows) ++counts[row.gpu];
  std::vector<std::pair<std::size_t, std::string>> by_count;
  for (const auto& [gpu, count] : counts) by_count.emplace_back(count, gpu);
  sort_stably(by_count, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::map<std::string, std::string> names;
  for (std::size_t i = 0; i < by_count.size(); ++i) {
    const std::string& gpu = by_count[i].second;
    names[gpu] = i < most_colours || by_count.size() == most_colours + 1 ? gpu : "others";
  }
  return names;
}

Json point_of(const Row& row, const std::map<std::string, std::string>& colours) {
  return {{"id", row.id},
          {"gpu", row.gpu},
          {"colour", colours.at(row.gpu)},
          {"source", row.source},
          {"gpus", row.gpus},
          {"measured", row.measured},
          {"predicted", row.predicted},
          {"percent", row.percent()}};
}

Json point_tooltip() {
  return tooltip({{"id", "row"},
                  {"source", "source"},
                  {"gpu", "GPU"},
                  {"measured", "measured"},
                  {"predicted", "predicted"},
                  {"percent", "error, %"}});
}

// A mark for each row, and the line on which all would lie.
Chart against_chart(const std::string& name, Measured rows) {
  const Json ends = Json::array({{{"measured", rows.low}, {"predicted", rows.low}},
                                 {{"measured", rows.high}, {"predicted", rows.high}}});
  const Json scale = {{"scale", {{"type", "log"}}}};
  const std::string unit = ", " + rows.unit;
  const Json line = {
      {"data", {{"values", ends}}},
      {"mark", {{"type", "line"}, {"strokeDash", Json::array({4, 4})}, {"color", "gray"}}},
      {"encoding",
       {{"x", quantity("measured", "measured" + unit, scale)},
        {"y", quantity("predicted", "predicted" + unit, scale)}}}};
  const Json marks = {{"mark", {{"type", "point"}, {"opacity", 0.6}}},
                      {"encoding",
                       {{"x", quantity("measured", "measured" + unit, scale)},
                        {"y", quantity("predicted", "predicted" + unit, scale)},
                        {"color", category("colour", "", legend_below())},
                        {"tooltip", point_tooltip()}}}};
  const std::string title = "Predicted against measured: " + quantity_words(name);
  return {name, title,
          framed(title, "on the dashed line they are equal", std::move(rows.values),
                 {{"layer", Json::array({line, marks})}}, 420)};
}

Chart size_chart(const std::vector<Row>& rows, const std::map<std::string, std::string>& colours) {
  Json values = Json::array();
  for (const Row& row : rows)
    if (row.quantity == speed && row.gpus > 0) values.push_back(point_of(row, colours));
  const std::string title = "Errors of speed by GPUs";
  return {
      "errors", title,
      framed(title, "above 0 a run is predicted too fast; beyond 60% it stands at the edge",
             std::move(values),
             {{"mark", {{"type", "point"}, {"opacity", 0.6}}},
              {"encoding",
               {{"x", quantity("gpus", "GPUs", {{"scale", {{"type", "log"}, {"base", 2}}}})},
                {"y", quantity("percent", "error, %",
                               {{"scale", {{"domain", Json::array({-60, 60})}, {"clamp", true}}}})},
                {"color", category("colour", "", legend_below())},
                {"tooltip", point_tooltip()}}}},
             320)};
}

// Median of a group's errors, and between which nine of ten lie.
Json group_value(const std::string& name, std::vector<double> errors) {
  return {{"group", fmt::format("{} ({})", name, errors.size())},
          {"low", percentile(errors, 5)},
          {"median", median(errors)},
          {"high", percentile(errors, 95)}};
}

Chart group_chart(const char* name, const std::string& title, const std::vector<Row>& rows,
                  std::string Row::*group) {
  std::map<std::string, std::vector<double>> errors;
  for (const Row& row : rows)
    if (row.quantity == speed && !(row.*group).empty()) errors[row.*group].push_back(row.percent());
  std::erase_if(errors, [](const auto& one) { return one.second.size() < least_rows; });
  Json values = Json::array();
  for (const auto& [label, list] : errors)
    if (values.size() < most_groups) values.push_back(group_value(label, list));
  const Json y = category("group", "", {{"sort", {{"field", "median"}}}});
  const Json help = tooltip(
      {{"group", "rows of"}, {"low", "5%, %"}, {"median", "median, %"}, {"high", "95%, %"}});
  const Json ranges = {
      {"mark", {{"type", "rule"}, {"strokeWidth", 2}, {"color", colours().front()}}},
      {"encoding",
       {{"y", y},
        {"x", quantity("low", "error of speed, %")},
        {"x2", {{"field", "high"}}},
        {"tooltip", help}}}};
  const Json middles = {
      {"mark", {{"type", "point"}, {"filled", true}, {"size", 70}, {"color", colours().at(5)}}},
      {"encoding", {{"y", y}, {"x", quantity("median", "error of speed, %")}, {"tooltip", help}}}};
  const int height = bars_height(values.size());
  return {name, title,
          framed(title, "the median, and where nine of ten rows lie; above 0: too fast",
                 std::move(values), {{"layer", Json::array({ranges, middles})}}, height)};
}

}  // namespace

std::vector<Chart> validation_charts(const JsonValue& answer) {
  if (!answer.has("rows")) return {};
  const std::vector<Row> rows = rows_of(answer);
  const std::map<std::string, std::string> colours = colour_names(rows);
  std::map<std::string, Measured> quantities;
  for (const JsonValue& row : answer.at("rows").items())
    if (row.has("quantity")) quantities[row.at("quantity").text()].unit = text_at(row, "unit");
  for (const Row& row : rows) {
    Measured& all = quantities[row.quantity];
    all.low = std::min({all.low, row.measured, row.predicted});
    all.high = std::max({all.high, row.measured, row.predicted});
    all.values.push_back(point_of(row, colours));
  }
  std::vector<Chart> charts;
  for (auto& [name, measured] : quantities)
    charts.push_back(against_chart(name, std::move(measured)));
  charts.push_back(size_chart(rows, colours));
  charts.push_back(group_chart("gpu", "Errors of speed by GPU", rows, &Row::gpu));
  charts.push_back(group_chart("stack", "Errors of speed by program", rows, &Row::stack));
  charts.push_back(group_chart("precision", "Errors of speed by precision", rows, &Row::precision));
  return charts;
}

}  // namespace orrery
