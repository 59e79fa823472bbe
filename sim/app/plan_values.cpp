// Reads values of question files: lists, ranges, tokens and dates.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "sim/app/plan_question.h"

namespace orrery {
namespace {

constexpr std::size_t most_values = 256;

struct Amount {
  double number = 0;
  std::string unit;  // "" for a plain number
};

Amount amount(const JsonValue& at) {
  if (at.is_number()) return {.number = at.number()};
  const std::string text = at.text();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number)) at.fail("a number, or one with a unit");
  std::string unit(end);
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size()
                                                                 : unit.find_first_not_of(' '));
  return {number, unit};
}

nlohmann::json json_of(double number, const std::string& unit) {
  if (!unit.empty()) return fmt::format("{:.10g} {}", number, unit);
  if (number == std::floor(number) && std::abs(number) < 1e15)
    return static_cast<std::int64_t>(number);
  return number;
}

std::vector<nlohmann::json> range_values(const JsonValue& at) {
  at.expect_only({"from", "to", "times", "step"});
  const Amount from = amount(at.at("from")), to = amount(at.at("to"));
  if (from.unit != to.unit) at.at("to").fail("the unit of from");
  if (to.number < from.number) at.at("to").fail("at least from");
  if (at.has("times") == at.has("step")) at.fail("either times or step in a range");
  double factor = 1, step = 0;
  if (const auto times = at.find("times")) {
    factor = times->number();
    if (!(factor > 1) || !(from.number > 0)) times->fail("a factor above 1, from a value above 0");
  } else {
    const Amount by = amount(at.at("step"));
    if (by.unit != from.unit || !(by.number > 0))
      at.at("step").fail("a step above 0, in the unit of from");
    step = by.number;
  }
  std::vector<nlohmann::json> values;
  const double end = to.number * (1 + 1e-9);
  for (double number = from.number; number <= end; number = number * factor + step) {
    if (values.size() == most_values) at.fail(fmt::format("at most {} values", most_values));
    values.push_back(json_of(number, from.unit));
  }
  return values;
}

}  // namespace

std::vector<nlohmann::json> plan_values(const JsonValue& at) {
  if (at.is_object() && (at.has("from") || at.has("to"))) return range_values(at);
  if (!at.is_array()) return {at.raw()};
  std::vector<nlohmann::json> values;
  for (const JsonValue& item : at.items()) {
    if (item.is_array() || item.is_null()) item.fail("a value");
    for (nlohmann::json& value : plan_values(item)) values.push_back(std::move(value));
  }
  if (values.empty()) at.fail("at least one value");
  if (values.size() > most_values) at.fail(fmt::format("at most {} values", most_values));
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

std::int64_t date_from(const JsonValue& at) {
  const std::string text = at.text();
  int year = 0;
  unsigned month = 0, day = 0;
  char rest = 0;
  const bool read = text.size() == 10 &&
                    std::sscanf(text.c_str(), "%4d-%2u-%2u%c", &year, &month, &day, &rest) == 3;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!read || !date.ok()) at.fail("a date such as \"2027-06-30\"");
  return std::chrono::sys_days(date).time_since_epoch().count();
}

std::string date_text(std::int64_t days) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

}  // namespace orrery
