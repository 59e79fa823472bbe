// SPDX-License-Identifier: Apache-2.0
// Draws what a cluster did over time: accelerators by state, jobs that wait, power.
#include <algorithm>

#include "sim/app/charts/charts.h"
#include "sim/app/charts/fleet.h"
#include "sim/app/charts/spec.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

constexpr double day = seconds_per_day, watts_per_megawatt = 1e6;
constexpr int curve_height = 90, states_height = 190;

// From the bottom: what is of use, what could be, what is not to be had. Colours are those of the
// same parts of GPU-time.
struct State {
  const char *key, *name, *colour;
};
constexpr State states[] = {{"held", "held", "#0072B2"},
                            {"blocked", "free, somebody waits", "#009E73"},
                            {"idle", "free, nobody waits", "#DADADA"},
                            {"spare", "spare", "#B8B8B8"},
                            {"repair", "under repair", "#6E6E6E"}};

// A stretch of the run, in days.
struct Stretch {
  double from = 0, to = 0;
  JsonValue part;
};

std::vector<Stretch> stretches_of(const JsonValue& first) {
  std::vector<Stretch> out;
  for (const JsonValue& part : first.at("timeline").items())
    out.push_back({part.at("from_s").number() / day, 0, part});
  for (std::size_t i = 0; i + 1 < out.size(); ++i) out[i].to = out[i + 1].from;
  if (out.size() < 2) return {};
  // All are equally long, but the last one may end before.
  const double length = out[1].from - out[0].from, end = first.at("span_s").number() / day;
  out.back().to = out.back().from + length;
  if (end > out.back().from) out.back().to = std::min(out.back().to, end);
  return out;
}

// Steps hold from one begin to the next: the last one needs an end of its own.
std::vector<double> begins_and_end(const std::vector<Stretch>& stretches) {
  std::vector<double> times;
  for (const Stretch& stretch : stretches) times.push_back(stretch.from);
  times.push_back(stretches.back().to);
  return times;
}

Json time_axis(const std::vector<Stretch>& stretches) {
  return quantity(
      "day", "days",
      {{"scale", {{"domain", Json::array({0, stretches.back().to})}, {"nice", false}}}});
}

// Who points at a stretch reads all of it.
Json readings(const JsonValue& point, const std::vector<Stretch>& stretches, Json top) {
  const double gpus = point.at("shape").at("gpus").number();
  Json values = Json::array();
  for (const Stretch& stretch : stretches) {
    Json row = {{"day", stretch.from},
                {"to", stretch.to},
                {"waiting", stretch.part.at("waiting").number()},
                {"mw", stretch.part.at("power_w").number() / watts_per_megawatt}};
    for (const State& state : states) row[state.key] = stretch.part.at(state.key).number() * gpus;
    values.push_back(std::move(row));
  }
  return {{"data", {{"values", std::move(values)}}},
          {"mark", {{"type", "rect"}, {"opacity", 0}}},
          {"encoding",
           {{"x", time_axis(stretches)},
            {"x2", {{"field", "to"}}},
            {"y", {{"datum", 0}, {"type", "quantitative"}}},
            {"y2", {{"datum", std::move(top)}}},
            {"tooltip", tooltip({{"day", "from day"},
                                 {"to", "to day"},
                                 {"held", "GPUs held"},
                                 {"blocked", "free, somebody waits"},
                                 {"idle", "free, nobody waits"},
                                 {"spare", "spare"},
                                 {"repair", "under repair"},
                                 {"waiting", "jobs that wait"},
                                 {"mw", "MW"}})}}}};
}

Chart states_chart(const JsonValue& point, const std::vector<Stretch>& stretches) {
  const double gpus = point.at("shape").at("gpus").number();
  const std::vector<double> times = begins_and_end(stretches);
  Json values = Json::array(), names = Json::array(), shades = Json::array();
  for (std::size_t i = 0; i < std::size(states); ++i) {
    bool shows = false;
    for (std::size_t k = 0; k < times.size(); ++k) {
      const JsonValue& part = stretches[std::min(k, stretches.size() - 1)].part;
      const double share = part.at(states[i].key).number();
      shows = shows || share > 0;
      values.push_back(
          {{"day", times[k]}, {"state", states[i].name}, {"order", i}, {"gpus", share * gpus}});
    }
    if (!shows) continue;
    names.push_back(states[i].name);
    shades.push_back(states[i].colour);
  }
  const Json scale = {{"domain", std::move(names)}, {"range", std::move(shades)}};
  const std::string title = "The cluster over time";
  Json layers = Json::array(
      {{{"mark", {{"type", "area"}, {"interpolate", "step-after"}}},
        {"encoding",
         {{"x", time_axis(stretches)},
          {"y", quantity("gpus", "GPUs",
                         {{"scale", {{"domain", Json::array({0, gpus})}, {"nice", false}}},
                          {"stack", "zero"}})},
          {"order", {{"field", "order"}, {"type", "quantitative"}}},
          {"color",
           category("state", "", {{"scale", scale}, {"legend", {{"orient", "bottom"}}}})}}}},
       readings(point, stretches, gpus)});
  return {"states", title,
          wide(framed(title, fleet_point_name(point) + ", first run: GPUs by what they do",
                      std::move(values), {{"layer", std::move(layers)}}, states_height))};
}

struct Curve {
  const char *name, *title, *key, *axis;
  double unit;
};

// Of the same time: means of its stretches.
Chart curve_chart(const JsonValue& point, const std::vector<Stretch>& stretches,
                  const Curve& curve) {
  const std::vector<double> times = begins_and_end(stretches);
  Json values = Json::array();
  double most = 0;
  for (std::size_t k = 0; k < times.size(); ++k) {
    const JsonValue& part = stretches[std::min(k, stretches.size() - 1)].part;
    const double value = part.at(curve.key).number() / curve.unit;
    most = std::max(most, value);
    values.push_back({{"day", times[k]}, {"value", value}});
  }
  Json layers = Json::array(
      {{{"mark",
         {{"type", "area"}, {"interpolate", "step-after"}, {"color", "#0072B2"}, {"opacity", 1}}},
        {"encoding", {{"x", time_axis(stretches)}, {"y", quantity("value", curve.axis)}}}},
       readings(point, stretches, most)});
  return {curve.name, curve.title,
          wide(framed(curve.title, fleet_point_name(point) + ", first run", std::move(values),
                      {{"layer", std::move(layers)}}, curve_height))};
}

}  // namespace

std::vector<Chart> fleet_timeline_charts(const JsonValue& point) {
  const std::vector<Stretch> stretches = stretches_of(point.at("first"));
  if (stretches.empty()) return {};
  return {
      states_chart(point, stretches),
      curve_chart(point, stretches, {"queue", "Jobs that wait over time", "waiting", "jobs", 1}),
      curve_chart(point, stretches,
                  {"power", "Power of accelerators and hosts over time", "power_w", "MW",
                   watts_per_megawatt})};
}

}  // namespace orrery
