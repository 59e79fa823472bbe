// SPDX-License-Identifier: Apache-2.0
// Draws served models: latencies of each point, speed a user against speed a GPU, a request's time.
#include "sim/app/charts/charts.h"
#include "sim/app/charts/spec.h"

namespace orrery {
namespace {

constexpr double per_millisecond = 1e3;

// What a point is called: what differs between points, or the deployment.
std::string name_of(const JsonValue& point) {
  const std::string varied = point.at("varied").text();
  return varied.empty() ? "this deployment" : varied;
}

bool serves(const JsonValue& point) { return point.at("refusal").text().empty(); }

struct Latency {
  const char *key, *name, *unit, *title;
  double scale;
};

// The mean and the high percentiles of each point, in the order of the question.
Chart latency_chart(const JsonValue& points, const Latency& latency) {
  Json values = Json::array();
  std::size_t rows = 0;
  for (const JsonValue& point : points.items()) {
    if (!serves(point)) continue;
    const JsonValue seconds = point.at("latency").at(latency.key);
    ++rows;
    for (const auto& [key, what] :
         {std::pair{"p50_s", "median"}, std::pair{"p95_s", "95th percentile"},
          std::pair{"p99_s", "99th percentile"}})
      if (seconds.find(key))
        values.push_back({{"point", name_of(point)},
                          {"what", what},
                          {"value", seconds.at(key).number() * latency.scale}});
  }
  Json in_order = {{"sort", nullptr}};
  in_order.update(legend_below());
  return {latency.name, latency.title,
          framed(latency.title, "", std::move(values),
                 point_marks(
                     quantity("value", latency.unit), category("point", "", {{"sort", nullptr}}),
                     category("what", "", in_order), category("what", "", {{"sort", nullptr}}),
                     tooltip({{"point", "point"}, {"what", "what"}, {"value", latency.unit}})),
                 bars_height(rows))};
}

Chart curve_chart(const JsonValue& points) {
  Json values = Json::array();
  for (const JsonValue& point : points.items()) {
    if (!serves(point)) continue;
    const auto tpot = point.at("latency").at("tpot").find("mean_s");
    if (!tpot || tpot->number() <= 0) continue;
    values.push_back(
        {{"point", name_of(point)},
         {"user", 1 / tpot->number()},
         {"gpu", point.at("throughput").at("output_tokens_per_s_per_gpu").number()},
         {"ttft", point.at("latency").at("ttft").at("mean_s").number()},
         {"stands", point.at("best").boolean() ? "no other is better in both" : "another is"}});
  }
  const std::string title = "Speed of a user against speed of a GPU";
  return {"curve", title,
          framed(title, "each mark is a point of the question", std::move(values),
                 point_marks(quantity("user", "tokens/s of a request"),
                             quantity("gpu", "output tokens/s of a GPU"),
                             category("stands", "", legend_below()), category("stands", ""),
                             tooltip({{"point", "point"},
                                      {"user", "tokens/s of a request"},
                                      {"gpu", "tokens/s of a GPU"},
                                      {"ttft", "mean TTFT, s"}})),
                 320)};
}

Chart request_chart(const JsonValue& points) {
  Json values = Json::array();
  std::size_t rows = 0;
  for (const JsonValue& point : points.items()) {
    if (!serves(point)) continue;
    ++rows;
    for (const auto& [key, seconds] : point.at("request").members())
      if (seconds.is_number() && seconds.number() > 0)
        values.push_back(
            {{"point", name_of(point)}, {"part", key_words(key)}, {"seconds", seconds.number()}});
  }
  const std::string title = "Where a request's time goes";
  return {
      "request", title,
      framed(title, "means over requests", std::move(values),
             {{"mark", {{"type", "bar"}}},
              {"encoding",
               {{"y", category("point", "", {{"sort", nullptr}})},
                {"x", quantity("seconds", "s")},
                {"color", category("part", "", legend_below())},
                {"tooltip", tooltip({{"point", "point"}, {"part", "part"}, {"seconds", "s"}})}}}},
             bars_height(rows))};
}

}  // namespace

std::vector<Chart> service_charts(const JsonValue& answer) {
  const JsonValue points = answer.at("points");
  std::size_t served = 0;
  for (const JsonValue& point : points.items()) served += serves(point) ? 1 : 0;
  if (served == 0) return {};
  std::vector<Chart> charts;
  if (served > 1) charts.push_back(curve_chart(points));
  charts.push_back(latency_chart(points, {"ttft", "ttft", "s", "Time to the first token", 1}));
  charts.push_back(
      latency_chart(points, {"tpot", "tpot", "ms", "Time of each further token", per_millisecond}));
  charts.push_back(request_chart(points));
  return charts;
}

}  // namespace orrery
