// SPDX-License-Identifier: Apache-2.0
// Finds the charts of an answer's command.
#include "sim/app/charts/charts.h"

namespace orrery {
namespace {

std::vector<Chart> all_charts_of(const JsonValue& answer) {
  const std::string name = answer.at("orrery").at("command").text();
  if (name == "simulate") return step_charts(answer);
  if (name == "advise") return advice_charts(answer);
  if (name == "plan") return plan_charts(answer);
  if (name == "serve") return service_charts(answer);
  if (name == "schedule") return fleet_charts(answer);
  if (name == "validate") return validation_charts(answer);
  return {};
}

}  // namespace

std::vector<Chart> charts_of(const JsonValue& answer) {
  std::vector<Chart> charts = all_charts_of(answer);
  std::erase_if(charts,
                [](const Chart& chart) { return chart.spec.at("data").at("values").empty(); });
  return charts;
}

Json charts_json(const std::vector<Chart>& charts) {
  Json list = Json::array();
  for (const Chart& chart : charts)
    list.push_back({{"name", chart.name}, {"title", chart.title}, {"spec", chart.spec}});
  return list;
}

}  // namespace orrery
