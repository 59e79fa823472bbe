// SPDX-License-Identifier: Apache-2.0
// Draws what there is to choose from: layouts of a job, machines and counts of a plan.
#include <fmt/format.h>

#include "sim/app/charts/charts.h"
#include "sim/app/charts/spec.h"
#include "sim/base/append.h"

namespace orrery {
namespace {

constexpr double million = 1e6;

}  // namespace

std::string short_layout(const JsonValue& layout) {
  std::string words;
  for (const char* key : {"tp", "pp", "vpp", "dp", "cp", "ep", "etp", "micro_batch"}) {
    const auto degree = layout.at(key).integer();
    if (degree == 1 && std::string(key) != "tp") continue;
    std::string name = std::string(key) == "micro_batch" ? "mb" : key;
    for (char& c : name) c = static_cast<char>(c - 'a' + 'A');
    words += (words.empty() ? "" : " ") + name + std::to_string(degree);
  }
  return words;
}

namespace {

Json candidates(const JsonValue& list, const char* kind) {
  Json values = Json::array();
  std::int64_t rank = 0;
  for (const JsonValue& one : list.items()) {
    const std::string words = short_layout(one.at("layout"));
    values.push_back({{"rank", ++rank},
                      {"layout", words},
                      {"place", fmt::format("{}. {}", rank, words)},
                      {"kind", kind},
                      {"seconds", one.at("step_time_s").number()},
                      {"tokens", one.at("tokens_per_s_per_gpu").number()},
                      {"megajoules", one.at("energy_per_step_j").number() / million},
                      {"gib", in_gibibytes(Bytes(one.at("peak_memory_bytes").number()))}});
  }
  return values;
}

Json candidate_tooltip() {
  return tooltip({{"rank", "place"},
                  {"layout", "layout"},
                  {"seconds", "step, s"},
                  {"tokens", "tokens/s/GPU"},
                  {"gib", "GiB of a GPU"},
                  {"megajoules", "MJ a step"}});
}

Chart layouts_chart(const std::string& of, const JsonValue& best) {
  const std::string title = "The best layouts";
  return {"layouts", title,
          framed(title, of, candidates(best, "best"),
                 {{"mark", {{"type", "bar"}, {"color", colours().front()}}},
                  {"encoding",
                   {{"y", category("place", "", {{"sort", {{"field", "rank"}}}})},
                    {"x", quantity("seconds", "s of a step")},
                    {"tooltip", candidate_tooltip()}}}},
                 bars_height(best.items().size()))};
}

Chart front_chart(const std::string& of, const JsonValue& front, const JsonValue& best) {
  Json values = candidates(front, "on the front");
  const Json fastest = candidates(best, "among the fastest");
  for (const Json& one : fastest) values.push_back(one);
  const std::string title = "Speed against memory";
  return {"pareto", title,
          framed(title, of, std::move(values),
                 point_marks(quantity("seconds", "s of a step",
                                      {{"scale", {{"type", "log"}, {"nice", false}}}}),
                             quantity("gib", "GiB of a GPU", {{"scale", {{"zero", false}}}}),
                             category("kind", "", legend_below()), category("kind", ""),
                             candidate_tooltip(), 50),
                 320)};
}

std::string values_words(const JsonValue& values) {
  std::string words;
  for (const auto& [key, value] : values.members())
    words += (words.empty() ? "" : ", ") + key + " " +
             (value.is_string() ? value.text() : value.raw().dump());
  return words;
}

Chart cost_chart(const JsonValue& answer) {
  Json values = Json::array();
  for (const JsonValue& p : answer.at("points").items()) {
    if (!p.find("duration_s") || !p.find("cost_usd")) continue;
    const auto why = p.find("why_not");
    values.push_back(
        {{"cluster", p.at("cluster").text()},
         {"gpus", p.at("gpus").integer()},
         {"with", values_words(p.at("values"))},
         {"days", p.at("duration_s").number() / seconds_per_day},
         {"millions", p.at("cost_usd").number() / million},
         {"stands", p.at("feasible").boolean() ? "keeps every limit" : "breaks a limit"},
         {"why", why ? why->text() : ""},
         {"megawatts", p.at("facility_peak_w").number() / million}});
  }
  const std::string title = "Cost against time";
  return {"cost", title,
          framed(title, answer.at("title").text(), std::move(values),
                 point_marks(quantity("days", "days",
                                      {{"scale", {{"zero", false}}}, {"axis", {{"tickCount", 6}}}}),
                             quantity("millions", "million USD", {{"scale", {{"zero", false}}}}),
                             category("cluster", ""), category("stands", ""),
                             tooltip({{"cluster", "cluster"},
                                      {"gpus", "GPUs"},
                                      {"with", "with"},
                                      {"days", "days"},
                                      {"millions", "million USD"},
                                      {"megawatts", "MW at the peak"},
                                      {"why", "breaks"}})),
                 320)};
}

Chart lost_chart(const JsonValue& detail) {
  Json values = Json::array();
  for (const auto& [key, share] : detail.at("time_shares").members())
    if (key != "effective" && share.number() > 0.00005)
      values.push_back({{"part", key_words(key)}, {"percent", 100 * share.number()}});
  const std::string title = "Where months lose time";
  const int height = bars_height(values.size());
  const double useful = detail.at("time_shares").at("effective").number();
  return {"months", title,
          framed(title, fmt::format("the best point; {:.1f}% of its time trains", 100 * useful),
                 std::move(values),
                 sorted_bars("part", quantity("percent", "% of the time"), colours().at(5),
                             tooltip({{"part", "part"}, {"percent", "% of the time"}})),
                 height)};
}

}  // namespace

std::vector<Chart> advice_charts(const JsonValue& answer) {
  const auto best = answer.find("best"), front = answer.find("pareto");
  if (!best || best->items().empty()) return {};
  const std::string of = subject_of(answer);
  std::vector<Chart> charts = {layouts_chart(of, *best)};
  if (front && !front->items().empty()) charts.push_back(front_chart(of, *front, *best));
  append(charts, step_charts(answer));
  return charts;
}

std::vector<Chart> plan_charts(const JsonValue& answer) {
  if (answer.at("points").items().empty()) return {};
  std::vector<Chart> charts = {cost_chart(answer)};
  if (const auto detail = answer.find("detail")) charts.push_back(lost_chart(*detail));
  return charts;
}

}  // namespace orrery
