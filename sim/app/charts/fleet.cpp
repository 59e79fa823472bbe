// SPDX-License-Identifier: Apache-2.0
// Draws a cluster's jobs: how long they wait at each point, where GPU-time goes, waits by size.
#include "sim/app/charts/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/app/charts/charts.h"
#include "sim/app/charts/spec.h"
#include "sim/base/text/words.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

constexpr std::size_t most_points = 20;      // of a chart
constexpr double least_part_share = 0.0005;  // of a part that shows

struct FleetPoint {
  std::string name;
  std::vector<JsonValue> runs;
  std::optional<SeedMean> wait, completion;  // in seconds
};

// Points that were run, in the order of the question; of many those of the least completion.
std::vector<FleetPoint> points_of(const JsonValue& answer) {
  std::vector<FleetPoint> points;
  for (const JsonValue& point : answer.at("points").items()) {
    const std::vector<JsonValue> runs = point.at("runs").items();
    if (!runs.empty())
      points.push_back({fleet_point_name(point), runs, mean_of_runs(runs, "wait_s"),
                        mean_of_runs(runs, "completion_s")});
  }
  if (points.size() <= most_points) return points;
  const auto less = [](const FleetPoint& a, const FleetPoint& b) {
    constexpr double never = std::numeric_limits<double>::infinity();
    return (a.completion ? a.completion->mean : never) <
           (b.completion ? b.completion->mean : never);
  };
  std::stable_sort(points.begin(), points.end(), less);
  points.resize(most_points);
  return points;
}

// What is drawn, of how many runs.
std::string of_what(const JsonValue& answer, const std::vector<FleetPoint>& points) {
  std::string text = answer.at("jobs").text();
  const std::size_t all = answer.at("points").items().size();
  if (points.size() < all) text += fmt::format(", {} of {} points", points.size(), all);
  return text;
}

bool has_seeds(const std::vector<FleetPoint>& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const FleetPoint& p) { return p.runs.size() > 1; });
}

Json wait_rows(const std::vector<FleetPoint>& points) {
  Json values = Json::array();
  for (const FleetPoint& point : points)
    for (const auto& [what, mean] :
         {std::pair{"wait", &point.wait}, std::pair{"wait and run", &point.completion}})
      if (*mean)
        values.push_back({{"point", point.name},
                          {"what", what},
                          {"hours", (*mean)->mean / seconds_per_hour},
                          {"low", std::max(0.0, (*mean)->low) / seconds_per_hour},
                          {"high", (*mean)->high / seconds_per_hour},
                          {"runs", point.runs.size()}});
  return values;
}

Chart wait_chart(const JsonValue& answer, const std::vector<FleetPoint>& points) {
  const bool seeds = has_seeds(points);
  const Json y = category("point", "", {{"sort", nullptr}}),
             offset = {{"field", "what"}, {"sort", nullptr}};
  Json layers = Json::array(
      {{{"mark", {{"type", "bar"}}},
        {"encoding",
         {{"y", y},
          {"yOffset", offset},
          {"x", quantity("hours", "hours")},
          {"color", category("what", "", {{"sort", nullptr}, {"legend", {{"orient", "bottom"}}}})},
          {"tooltip", tooltip({{"point", "point"},
                               {"what", "mean"},
                               {"hours", "hours"},
                               {"low", "90% interval from"},
                               {"high", "to"},
                               {"runs", "runs"}})}}}}});
  if (seeds)
    layers.push_back({{"mark", {{"type", "rule"}, {"strokeWidth", 2}, {"color", "gray"}}},
                      {"encoding",
                       {{"y", y},
                        {"yOffset", offset},
                        {"x", quantity("low", "hours")},
                        {"x2", {{"field", "high"}}}}}});
  const std::string title = "How long jobs wait, and until they end";
  return {
      "waits", title,
      framed(title,
             of_what(answer, points) +
                 (seeds ? ": means over runs; grey lines are 90% intervals" : ": means"),
             wait_rows(points), {{"layer", std::move(layers)}}, bars_height(2 * points.size()))};
}

// Parts of GPU-time, in the order of the answer, with colours that neighbours do not share.
struct PartColour {
  const char *key, *name, *colour;
};
constexpr PartColour parts[] = {{"useful", "useful", "#0072B2"},
                                {"in_vain", "in vain", "#56B4E9"},
                                {"slowed", "slowed", "#CC79A7"},
                                {"capped", "capped", "#7A3E65"},
                                {"checkpoint", "checkpoint", "#F0E442"},
                                {"restart", "restart", "#E69F00"},
                                {"lost", "lost", "#D55E00"},
                                {"preemption", "preempted", "#8C3B00"},
                                {"unshared", "unshared", "#B2A0D8"},
                                {"short", "short", "#009E73"},
                                {"scattered", "scattered", "#66C9AD"},
                                {"spare", "spare", "#B8B8B8"},
                                {"repair", "repair", "#6E6E6E"},
                                {"standby", "standby", "#C9B458"},
                                {"idle", "idle", "#DADADA"}};

Chart share_chart(const JsonValue& answer, const std::vector<FleetPoint>& points) {
  Json values = Json::array(), names = Json::array(), shades = Json::array();
  for (std::size_t i = 0; i < std::size(parts); ++i) {
    bool shows = false;
    for (const FleetPoint& point : points) {
      double sum = 0;
      for (const JsonValue& run : point.runs)
        if (const auto part = run.at("gpu_share").find(parts[i].key)) sum += part->number();
      const double share = sum / static_cast<double>(point.runs.size());
      if (share < least_part_share) continue;
      shows = true;
      values.push_back(
          {{"point", point.name}, {"part", parts[i].name}, {"order", i}, {"percent", 100 * share}});
    }
    if (!shows) continue;
    names.push_back(parts[i].name);
    shades.push_back(parts[i].colour);
  }
  const Json scale = {{"domain", std::move(names)}, {"range", std::move(shades)}};
  const std::string title = "Where GPU-time goes";
  return {
      "shares", title,
      framed(title, of_what(answer, points), std::move(values),
             {{"mark", {{"type", "bar"}, {"stroke", "white"}, {"strokeWidth", 0.5}}},
              {"encoding",
               {{"y", category("point", "", {{"sort", nullptr}})},
                {"x", quantity("percent", "% of GPU-time",
                               {{"scale", {{"domain", Json::array({0, 100})}}}})},
                {"order", {{"field", "order"}, {"type", "quantitative"}}},
                {"color",
                 category("part", "",
                          {{"scale", scale}, {"legend", {{"orient", "bottom"}, {"columns", 6}}}})},
                {"tooltip",
                 tooltip({{"point", "point"}, {"part", "part"}, {"percent", "% of GPU-time"}})}}}},
             bars_height(points.size()))};
}

// Waits are seconds or weeks: an axis that is even up to a minute and logarithmic above it.
Json wait_axis() {
  return {{"scale", {{"type", "symlog"}, {"constant", 60}, {"domainMin", 0}}},
          {"axis",
           {{"values", Json::array({0, 60, 600, 3600, 6 * 3600, 86'400, 604'800, 2'592'000})},
            {"labelExpr",
             "datum.value == 0 ? '0' : datum.value < 3600 ? datum.value / 60 + ' min' : "
             "datum.value < 86400 ? datum.value / 3600 + ' h' : datum.value / 86400 + ' d'"}}}};
}

Chart size_chart(const JsonValue& point) {
  Json values = Json::array();
  std::size_t rows = 0;
  for (const JsonValue& group : point.at("first").at("by_size").items()) {
    const JsonValue wait = group.at("wait_s");
    if (wait.at("jobs").integer() == 0) continue;
    ++rows;
    for (const auto& [key, what] : {std::pair{"p50", "median"}, std::pair{"p90", "90th percentile"},
                                    std::pair{"p99", "99th percentile"}})
      values.push_back({{"size", group.at("name").text()},
                        {"what", what},
                        {"seconds", wait.at(key).number()},
                        {"time", to_text(Seconds(wait.at(key).number()))},
                        {"jobs", group.at("jobs").integer()}});
  }
  const std::string title = "Who waits how long";
  Json in_order = {{"sort", nullptr}};
  in_order.update(legend_below());
  return {
      "sizes", title,
      framed(
          title, fleet_point_name(point) + ", first run: waits by what jobs ask for",
          std::move(values),
          point_marks(
              quantity("seconds", "wait", wait_axis()), category("size", "", {{"sort", nullptr}}),
              category("what", "", in_order), category("what", "", {{"sort", nullptr}}),
              tooltip({{"size", "jobs of"}, {"what", "what"}, {"time", "wait"}, {"jobs", "jobs"}})),
          bars_height(rows))};
}

}  // namespace

std::string fleet_point_name(const JsonValue& point) {
  std::string name = point.at("policy").text() + ", " + point.at("place").text();
  for (const auto& [key, words] : point.at("varied").members())
    name += ", " + key + " " + words.text();
  return name;
}

JsonValue best_fleet_point(const JsonValue& answer) {
  const std::vector<JsonValue> points = answer.at("points").items();
  if (points.empty()) answer.at("points").fail("at least one point");
  return points[static_cast<std::size_t>(
      answer.at("best").integer(0, static_cast<std::int64_t>(points.size()) - 1))];
}

std::optional<SeedMean> mean_of_runs(const std::vector<JsonValue>& runs, const char* key) {
  std::vector<double> values;
  for (const JsonValue& run : runs) {
    if (!run.find(key)) return std::nullopt;
    values.push_back(run.at(key).number());
  }
  return mean_over_seeds(values);
}

std::vector<Chart> fleet_charts(const JsonValue& answer) {
  const std::vector<FleetPoint> points = points_of(answer);
  if (points.empty()) return {};
  std::vector<Chart> charts = {wait_chart(answer, points), share_chart(answer, points)};
  if (const JsonValue best = best_fleet_point(answer); best.find("first")) {
    charts.push_back(size_chart(best));
    for (Chart& chart : fleet_timeline_charts(best)) charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace orrery
