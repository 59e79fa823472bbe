// SPDX-License-Identifier: Apache-2.0
// Reads values of question files: lists, ranges and tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "sim/question/plan/question.h"

namespace orrery {
namespace {

constexpr std::size_t most_values = 256;

struct Amount {
  double number = 0;
  std::string unit;  // "" for a plain number
};

std::optional<Amount> amount_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string digits(text.c_str(), static_cast<const char*>(end));
  // strtod reads 0x10 too, which nobody means here.
  if (digits.empty() || !std::isfinite(number) || digits.find_first_of("xX") != std::string::npos)
    return std::nullopt;
  std::string unit(end);
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  unit.erase(unit.find_last_not_of(' ') + 1);
  return Amount{number, unit};
}

Amount amount(const JsonValue& at) {
  if (at.is_number()) return {.number = at.number()};
  const auto given = amount_in(at.text());
  if (!given) at.fail("a number, or one with a unit");
  return *given;
}

SortedJson json_of(double number, const std::string& unit) {
  if (!unit.empty()) return fmt::format("{:.10g} {}", number, unit);
  if (number == std::floor(number) && std::abs(number) < 1e15)
    return static_cast<std::int64_t>(number);
  return number;
}

struct Range {
  Amount from, to;
  double times = 1, step = 0;
};

std::vector<SortedJson> values_of(const Range& range, const JsonValue& at) {
  std::vector<SortedJson> values;
  const double end = range.to.number * (1 + 1e-9);
  double number = range.from.number;
  while (number <= end) {
    if (values.size() == most_values) at.fail(fmt::format("at most {} values", most_values));
    values.push_back(json_of(number, range.from.unit));
    number = number * range.times + range.step;
  }
  return values;
}

std::vector<SortedJson> range_values(const JsonValue& at) {
  at.expect_only({"from", "to", "times", "step"});
  Range range{.from = amount(at.at("from")), .to = amount(at.at("to"))};
  if (range.from.unit != range.to.unit) at.at("to").fail("the unit of from");
  if (range.to.number < range.from.number) at.at("to").fail("at least from");
  if (at.find("times").has_value() == at.find("step").has_value())
    at.fail("either times or step in a range");
  if (const auto times = at.find("times")) {
    range.times = times->number();
    if (!(range.times > 1) || !(range.from.number > 0))
      times->fail("a factor above 1, from a value above 0");
  } else {
    const Amount by = amount(at.at("step"));
    if (by.unit != range.from.unit || !(by.number > 0))
      at.at("step").fail("a step above 0, in the unit of from");
    range.step = by.number;
  }
  return values_of(range, at);
}

constexpr const char* text_range =
    "a range such as 1024..16384 (each twice the last), 1024..16384x4 or \"10 MW..50 MW+20 MW\"";

// "FROM..TO", "FROM..TOxFACTOR" or "FROM..TO+STEP"; nullopt for other text, such as "../file.json".
std::optional<Range> range_in(const JsonValue& at) {
  if (!at.is_string()) return std::nullopt;
  const std::string text = at.text();
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos || dots == 0) return std::nullopt;
  const auto from = amount_in(text.substr(0, dots));
  if (!from) return std::nullopt;
  std::string rest = text.substr(dots + 2);
  const std::size_t sign = rest.find_first_of("x+", 1);
  const char kind = sign == std::string::npos ? 'x' : rest[sign];
  const auto by =
      sign == std::string::npos ? Amount{.number = 2} : amount_in(rest.substr(sign + 1));
  const auto to = amount_in(rest.substr(0, sign));
  if (!to || !by) at.fail(text_range);
  Range range{.from = *from, .to = *to};
  if (range.from.unit.empty()) range.from.unit = range.to.unit;  // "10..50 MW"
  const bool twice = kind == 'x';
  if (range.from.unit != range.to.unit || (twice ? !by->unit.empty() : by->unit != range.to.unit))
    at.fail(text_range);
  if (range.to.number < range.from.number)
    at.fail("a range that rises: its end lies below its start");
  if (twice ? !(by->number > 1) || !(range.from.number > 0) : !(by->number > 0))
    at.fail("a range that rises from a value above 0");
  (twice ? range.times : range.step) = by->number;
  return range;
}

}  // namespace

std::vector<SortedJson> plan_values(const JsonValue& at) {
  if (at.is_object() && (at.has("from") || at.has("to"))) return range_values(at);
  if (const auto range = range_in(at)) return values_of(*range, at);
  if (!at.is_array()) return {at.raw()};
  std::vector<SortedJson> values;
  for (const JsonValue& item : at.items()) {
    if (item.is_array() || item.is_null()) item.fail("a value");
    for (SortedJson& value : plan_values(item)) values.push_back(std::move(value));
    if (values.size() > most_values) at.fail(fmt::format("at most {} values", most_values));
  }
  if (values.empty()) at.fail("at least one value");
  return values;
}

double tokens_from(const JsonValue& at) {
  double tokens = 0;
  if (at.is_number()) {
    tokens = at.number();
  } else {
    const Amount given = amount(at);
    double scale = 0;
    if (given.unit.empty()) scale = 1;
    if (given.unit == "k") scale = 1e3;
    if (given.unit == "M") scale = 1e6;
    if (given.unit == "B" || given.unit == "G") scale = 1e9;
    if (given.unit == "T") scale = 1e12;
    if (scale == 0) at.fail("tokens, such as \"15T\" or \"300B\"");
    tokens = given.number * scale;
  }
  if (!(tokens >= 1) || tokens > 1e20) at.fail("tokens from 1 to 1e20, such as \"15T\"");
  return tokens;
}

Flop flop_from(const JsonValue& at) {
  const Amount given = amount(at);
  double flop = given.number;
  if (!given.unit.empty()) flop = at.quantity<Flop>().si();
  if (!(flop >= 1e12) || flop > 1e32) at.fail("FLOP from 1e12 to 1e32, such as \"1e26\"");
  return Flop(flop);
}

}  // namespace orrery
