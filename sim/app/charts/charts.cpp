// SPDX-License-Identifier: Apache-2.0
// Draws answers: finds the charts of their command, and predictions against measurements.
#include "sim/app/charts/charts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/app/charts/spec.h"

namespace orrery {
namespace {

struct Measured {
  Json values = Json::array();
  double low = INFINITY, high = 0;
  std::string unit;
};

// A mark for each row, and the line on which all would lie.
Chart against_chart(const std::string& quantity_name, Measured rows) {
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
                        {"color", category("gpu", "")},
                        {"tooltip", tooltip({{"id", "row"},
                                             {"gpu", "GPU"},
                                             {"measured", "measured"},
                                             {"predicted", "predicted"},
                                             {"percent", "error, %"}})}}}};
  const std::string title = "Predicted against measured: " + key_words(quantity_name);
  return {quantity_name, title,
          framed(title, "on the dashed line they are equal", std::move(rows.values),
                 {{"layer", Json::array({line, marks})}}, 420)};
}

}  // namespace

std::vector<Chart> validation_charts(const JsonValue& answer) {
  if (!answer.has("rows")) return {};
  std::map<std::string, Measured> quantities;
  for (const JsonValue& row : answer.at("rows").items()) {
    const auto predicted = row.find("predicted"), measured = row.find("measured");
    if (!predicted || !measured || !row.has("quantity")) continue;
    const double is = measured->number(), said = predicted->number();
    if (is <= 0 || said <= 0) continue;
    Measured& all = quantities[row.at("quantity").text()];
    all.unit = row.at("unit").text();
    all.low = std::min({all.low, is, said});
    all.high = std::max({all.high, is, said});
    const auto group = row.find("group");
    const auto gpu = group ? group->find("gpu") : std::nullopt;
    all.values.push_back({{"id", row.at("id").text()},
                          {"gpu", gpu ? gpu->text() : ""},
                          {"measured", is},
                          {"predicted", said},
                          {"percent", 100 * (said / is - 1)}});
  }
  std::vector<Chart> charts;
  for (auto& [name, rows] : quantities) charts.push_back(against_chart(name, std::move(rows)));
  return charts;
}

std::vector<Chart> charts_of(const JsonValue& answer) {
  const std::string name = answer.at("orrery").at("command").text();
  if (name == "simulate") return step_charts(answer);
  if (name == "advise") return advice_charts(answer);
  if (name == "plan") return plan_charts(answer);
  if (name == "serve") return service_charts(answer);
  if (name == "validate") return validation_charts(answer);
  return {};
}

}  // namespace orrery
