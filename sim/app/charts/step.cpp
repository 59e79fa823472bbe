// SPDX-License-Identifier: Apache-2.0
// Draws one predicted step: where time and memory go, what it rests on, what would speed it up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/app/answer/answer.h"
#include "sim/app/charts/charts.h"
#include "sim/app/charts/spec.h"
#include "workloads/operations/label.h"

namespace orrery {
namespace {

constexpr std::size_t most_bars = 12;
constexpr double least_bar_share = 0.0005;  // of a bar that shows

// Parts of the step on the stage that paces it.
Chart time_chart(const std::string& of, const JsonValue& prediction) {
  const auto stage =
      static_cast<std::size_t>(prediction.at("bottleneck_stage").integer(0, 1 << 20));
  const double step = prediction.at("step_time_s").number();
  Json values = Json::array();
  const std::vector<JsonValue> stages = prediction.at("stages").items();
  if (stage >= stages.size())
    prediction.at("bottleneck_stage").fail("the number of one of its stages");
  for (int i = 0; i < label_count; ++i) {
    const auto label = static_cast<Label>(i);
    const auto part = stages[stage].find(json_key(to_text(label)) + "_s");
    if (part && part->number() > least_bar_share * step)
      values.push_back({{"part", std::string(phrase(label))},
                        {"seconds", part->number()},
                        {"percent", 100 * part->number() / step}});
  }
  const std::string title = "Where the time goes";
  const int height = bars_height(values.size());
  return {
      "time", title,
      framed(
          title, fmt::format("{}: {:.3g} s a step, stage {}", of, step, stage), std::move(values),
          sorted_bars("part", quantity("seconds", "s of a step"), colours().front(),
                      tooltip({{"part", "part"}, {"seconds", "s"}, {"percent", "% of the step"}})),
          height)};
}

// Kinds of memory as people sum them up.
std::string memory_kind(const std::string& key) {
  if (key.ends_with("activations_bytes") || key == "checkpoints_bytes" || key == "logits_bytes")
    return "activations";
  if (key == "parameters_bytes" || key == "gradients_bytes" || key == "optimizer_bytes" ||
      key == "kv_cache_bytes")
    return key_words(key);
  return "buffers and fragments";
}

Chart memory_chart(const std::string& of, const JsonValue& memory) {
  Json values = Json::array();
  std::int64_t stage = 0;
  for (const JsonValue& one : memory.at("stages").items()) {
    for (const auto& [key, bytes] : one.at("categories").members())
      if (bytes.number() > 0)
        values.push_back({{"stage", stage},
                          {"kind", memory_kind(key)},
                          {"part", key_words(key)},
                          {"gib", in_gibibytes(Bytes(bytes.number()))}});
    ++stage;
  }
  const std::string title = "Memory of a GPU by stage";
  const double capacity = in_gibibytes(Bytes(memory.at("capacity_bytes").number()));
  const Json limit = {
      {"data", {{"values", Json::array({{{"capacity", capacity}}})}}},
      {"mark", {{"type", "rule"}, {"strokeDash", Json::array({4, 4})}, {"color", "#D55E00"}}},
      {"encoding", {{"x", quantity("capacity", "GiB")}}}};
  const Json bars = {
      {"mark", {{"type", "bar"}, {"stroke", "white"}, {"strokeWidth", 0.5}}},
      {"encoding",
       {{"y", {{"field", "stage"}, {"type", "ordinal"}, {"title", "pipeline stage"}}},
        {"x", quantity("gib", "GiB")},
        {"color", category("kind", "", legend_below())},
        {"tooltip", tooltip({{"stage", "stage"}, {"part", "part"}, {"gib", "GiB"}})}}}};
  return {"memory", title,
          framed(title, fmt::format("{}: the dashed line is the {:.1f} GiB of a GPU", of, capacity),
                 std::move(values), {{"layer", Json::array({bars, limit})}},
                 bars_height(static_cast<std::size_t>(stage)))};
}

// How far the step moves between the ends of each value that is no fact.
Chart sensitivity_chart(const std::string& of, const JsonValue& assumptions) {
  Json values = Json::array();
  std::size_t rows = 0;
  for (const JsonValue& a : assumptions.items()) {
    const double low = a.at("effect_low").number(), high = a.at("effect_high").number();
    if (rows == most_bars || std::max(std::abs(low), std::abs(high)) < least_bar_share) break;
    for (const auto& [end, effect] : {std::pair{"low", low}, std::pair{"high", high}})
      values.push_back({{"value", a.at("path").text()},
                        {"end", std::string("at the ") + end + " end of its range"},
                        {"is", a.at(end).text()},
                        {"evidence", a.at("evidence").text()},
                        {"source", a.at("source").text()},
                        {"percent", 100 * effect}});
    ++rows;
  }
  const std::string title = "What the prediction rests on";
  return {"sensitivity", title,
          framed(title, of + ": change of the step at either end of a value that is no fact",
                 std::move(values),
                 {{"mark", {{"type", "bar"}, {"opacity", 0.85}}},
                  {"encoding",
                   {{"y", category("value", "", {{"sort", nullptr}})},
                    {"x", quantity("percent", "% of the step's time", {{"stack", nullptr}})},
                    {"color", category("end", "", list_below())},
                    {"tooltip", tooltip({{"value", "value"},
                                         {"is", "at"},
                                         {"percent", "% of the step"},
                                         {"evidence", "evidence"},
                                         {"source", "source"}})}}}},
                 bars_height(rows))};
}

Chart lever_chart(const std::string& of, const JsonValue& levers) {
  Json values = Json::array();
  for (const JsonValue& lever : levers.items())
    if (lever.at("applies").boolean() && lever.find("faster") &&
        lever.at("faster").number() > 0.005)
      values.push_back({{"lever", lever.at("name").text()},
                        {"percent", 100 * lever.at("faster").number()},
                        {"seconds", lever.at("step_time_s").number()},
                        {"note", lever.at("note").text()}});
  const std::string title = "What would make it faster";
  const int height = bars_height(values.size());
  return {"levers", title,
          framed(title, of, std::move(values),
                 sorted_bars("lever", quantity("percent", "% faster"), colours().at(2),
                             tooltip({{"lever", "change"},
                                      {"percent", "% faster"},
                                      {"seconds", "step, s"},
                                      {"note", "note"}})),
                 height)};
}

}  // namespace

std::vector<Chart> step_charts(const JsonValue& answer) {
  const auto winner = answer.find("winner"), only = answer.find("prediction");
  if (!winner && !only) return {};
  const JsonValue prediction = winner ? *winner : *only;
  const std::string of = subject_of(answer);
  std::vector<Chart> charts = {time_chart(of, prediction),
                               memory_chart(of, prediction.at("memory"))};
  if (!prediction.at("assumptions").items().empty())
    charts.push_back(sensitivity_chart(of, prediction.at("assumptions")));
  if (const auto timeline = answer.find("timeline"))
    charts.push_back(timeline_chart(of, *timeline));
  if (const auto reasons = answer.find("reasons"))
    charts.push_back(lever_chart(of, reasons->at("levers")));
  return charts;
}

}  // namespace orrery
