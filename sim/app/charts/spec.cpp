// SPDX-License-Identifier: Apache-2.0
// Writes the parts that charts share.
#include "sim/app/charts/spec.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

constexpr int chart_width = 560;

Json channel(const std::string& field, const char* type, const std::string& title, Json more) {
  Json out = {{"field", field}, {"type", type}, {"title", title}};
  out.update(more);
  return out;
}

}  // namespace

Json colours() {
  return Json::array({"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999"});
}

Json quantity(const std::string& field, const std::string& title, Json more) {
  return channel(field, "quantitative", title, std::move(more));
}

Json category(const std::string& field, const std::string& title, Json more) {
  return channel(field, "nominal", title, std::move(more));
}

Json tooltip(std::initializer_list<std::pair<const char*, const char*>> fields) {
  Json list = Json::array();
  for (const auto& [field, title] : fields) list.push_back({{"field", field}, {"title", title}});
  return list;
}

Json legend_below() { return {{"legend", {{"orient", "bottom"}}}}; }
Json list_below() {
  return {{"legend", {{"orient", "bottom"}, {"columns", 1}, {"labelLimit", 320}}}};
}

Json sorted_bars(const std::string& field, Json x, const Json& colour, Json tooltip) {
  return {{"mark", {{"type", "bar"}, {"color", colour}}},
          {"encoding",
           {{"y", category(field, "", {{"sort", "-x"}})},
            {"x", std::move(x)},
            {"tooltip", std::move(tooltip)}}}};
}

Json point_marks(Json x, Json y, Json colour, Json shape, Json tooltip, int size) {
  return {{"mark", {{"type", "point"}, {"filled", true}, {"size", size}}},
          {"encoding",
           {{"x", std::move(x)},
            {"y", std::move(y)},
            {"color", std::move(colour)},
            {"shape", std::move(shape)},
            {"tooltip", std::move(tooltip)}}}};
}

Json framed(const std::string& title, const std::string& subtitle, Json values, Json body,
            int height) {
  Json out = {{"$schema", "https://vega.github.io/schema/vega-lite/v6.json"},
              {"title", {{"text", title}, {"subtitle", subtitle}, {"anchor", "start"}}},
              {"width", chart_width},
              {"data", {{"values", std::move(values)}}}};
  if (height > 0) out["height"] = height;
  for (auto& [key, value] : body.items()) out[key] = std::move(value);
  out["config"] = {{"range", {{"category", colours()}}},
                   {"axis", {{"labelLimit", 320}, {"titleFontWeight", "normal"}}},
                   {"title", {{"subtitleColor", "gray"}}},
                   {"view", {{"stroke", nullptr}}}};
  return out;
}

Json wide(Json specification) {
  specification["usermeta"] = {{"wide", true}};
  return specification;
}

int bars_height(std::size_t rows) { return static_cast<int>(22 * std::max<std::size_t>(rows, 1)); }

std::string subject_of(const JsonValue& answer) {
  return fmt::format("{} on {} x {}", answer.at("model").text(), answer.at("gpus").integer(),
                     answer.at("cluster").text());
}

std::string quantity_words(const std::string& key) {
  if (key == "tokens_s_gpu") return "tokens/s/GPU";
  if (key == "static_memory") return "memory between steps";
  if (key == "ttft" || key == "tpot") return key == "ttft" ? "TTFT" : "TPOT";
  return key_words(key);
}

bool is_verdict(const std::string& quantity) { return quantity == "oom"; }

std::string key_words(std::string key) {
  for (const char* unit : {"_s", "_bytes"})
    if (key.ends_with(unit)) {
      key.resize(key.size() - std::string(unit).size());
      break;
    }
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

}  // namespace orrery
