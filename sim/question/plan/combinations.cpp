// SPDX-License-Identifier: Apache-2.0
// Reads values that are several, and joins each with each.
#include "sim/question/plan/combinations.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>

#include "sim/base/errors/check.h"
#include "sim/question/plan/question.h"

namespace orrery {
namespace {

constexpr std::size_t most_points = 10'000;

// Where a text has a range as a part of it: "poisson:2..16/s", "1..8xTP4".
struct RangePart {
  std::string before, range, after;
};

// Engines: the range is before the 'x' that axes follow. Else: between colons.
std::optional<RangePart> range_part(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos || dots == 0) return std::nullopt;
  if (std::isdigit(static_cast<unsigned char>(text[dots - 1])) == 0) return std::nullopt;
  for (std::size_t x = dots; (x = text.find('x', x)) != std::string::npos; ++x)
    if (x + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[x + 1])) != 0)
      return RangePart{"", text.substr(0, x), text.substr(x)};
  const std::size_t colon = text.rfind(':', dots);
  const std::size_t from = colon == std::string::npos ? 0 : colon + 1;
  const std::size_t to = std::min(text.find(':', dots), text.size());
  if (from == 0 && to == text.size()) return std::nullopt;  // all of it: as plan reads it
  return RangePart{text.substr(0, from), text.substr(from, to - from), text.substr(to)};
}

// "2 /s" as "2/s".
std::string shown(const SortedJson& value) {
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  std::erase(text, ' ');
  return text;
}

void add_values(const JsonValue& at, std::vector<SortedJson>& values) {
  const auto part = at.is_string() ? range_part(at.text()) : std::nullopt;
  if (!part) {
    for (SortedJson& value : plan_values(at)) values.push_back(std::move(value));
    return;
  }
  // A range that cannot be read is named by the whole text.
  const JsonValue range = JsonValue::from(part->range, at.file());
  std::vector<SortedJson> numbers;
  try {
    numbers = plan_values(range);
  } catch (const Error& error) {
    at.fail(error.info().expected);
  }
  for (const SortedJson& number : numbers)
    values.push_back(part->before + shown(number) + part->after);
}

std::vector<SortedJson> values_of(const JsonValue& at) {
  std::vector<SortedJson> values;
  if (!at.is_array()) {
    add_values(at, values);
    return values;
  }
  for (const JsonValue& item : at.items()) {
    if (item.is_array() || item.is_null()) item.fail("a value");
    add_values(item, values);
  }
  if (values.empty()) at.fail("at least one value");
  return values;
}

std::string label_of(const JsonValue& value) {
  if (value.is_number()) return fmt::format("{:g}", value.number());
  if (value.is_object() && value.has("name")) return value.at("name").text();
  return value.is_string() ? value.text() : value.raw().dump();
}

}  // namespace

std::vector<QuestionPoint> combinations_of(const JsonValue& settings,
                                           const std::vector<std::string>& keys) {
  struct Grown {
    std::vector<std::pair<std::string, std::string>> values;
    SortedJson settings;
  };
  std::vector<Grown> points{{{}, settings.raw()}};
  for (const std::string& key : keys) {
    const auto value = settings.find(key);
    if (!value) continue;
    const std::vector<SortedJson> values = values_of(*value);
    if (points.size() * values.size() > most_points)
      value->fail(fmt::format("at most {} combinations", most_points));
    const bool several = value->is_array() || values.size() > 1;
    std::vector<Grown> grown;
    for (const Grown& point : points)
      for (const SortedJson& one : values) {
        grown.push_back(point);
        grown.back().settings[key] = one;
        if (several)
          grown.back().values.emplace_back(key, label_of(JsonValue::from(one, settings.file())));
      }
    points = std::move(grown);
  }
  std::vector<QuestionPoint> out;
  for (Grown& point : points) {
    std::string varied;
    for (const auto& [key, words] : point.values)
      varied += fmt::format("{}{} {}", varied.empty() ? "" : ", ", key, words);
    out.push_back({std::move(varied), JsonValue::from(std::move(point.settings), settings.file()),
                   std::move(point.values)});
  }
  return out;
}

}  // namespace orrery
