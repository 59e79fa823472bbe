// SPDX-License-Identifier: Apache-2.0
// Knows how dates are written and which days exist.
#include "sim/base/date.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "sim/base/json/tree.h"

namespace orrery {
namespace {

// All of `digits` as a number that is not negative.
std::optional<int> number_from(std::string_view digits) {
  int number = 0;
  for (const char c : digits)
    if (c < '0' || c > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<Date> date_from_text(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = number_from(text.substr(0, 4));
  const auto month = number_from(text.substr(5, 2));
  const auto day = number_from(text.substr(8, 2));
  if (!year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return Date{std::chrono::sys_days(date).time_since_epoch().count()};
}

std::string to_text(Date date) {
  const std::chrono::year_month_day day{std::chrono::sys_days(std::chrono::days(date.days))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

Date read_date(const JsonValue& at) {
  const std::optional<Date> date = date_from_text(at.text());
  if (!date) at.fail("a date such as \"2027-06-30\"");
  return *date;
}

Sourced<Date> read_sourced_date(const JsonValue& at) {
  // Evidence, range and source obey the rules of every other value, with days as the number.
  SortedJson in_days = at.raw();
  for (const char* key : {"value", "low", "high"})
    if (const auto member = at.is_object() ? at.find(key) : std::nullopt)
      in_days[key] = read_date(*member).days;
  const JsonValue plain = JsonValue::from({{"at", std::move(in_days)}}, at.file());
  Sourced<std::int64_t> days;
  try {
    days = read_sourced<std::int64_t>(plain.at("at"));
  } catch (const Error& error) {
    ErrorInfo info = error.info();
    info.path = at.path() + info.path.substr(std::string_view("at").size());
    throw Error(std::move(info));
  }
  const auto date = [](std::optional<std::int64_t> day) {
    return day ? std::optional(Date{*day}) : std::nullopt;
  };
  return {.value = date(days.value),
          .low = date(days.low),
          .high = date(days.high),
          .evidence = days.evidence,
          .source = days.source,
          .reason = days.reason};
}

}  // namespace orrery
