// SPDX-License-Identifier: Apache-2.0
// Knows calendar dates: read from "2024-11-01", compared, moved by days, printed.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/json/json.h"
#include "sim/base/units/sourced.h"

namespace orrery {

// A day of the Gregorian calendar; the default is 1970-01-01.
struct Date {
  std::int64_t days = 0;  // since 1970-01-01
  friend constexpr auto operator<=>(const Date&, const Date&) = default;
};
constexpr Date operator+(Date date, std::int64_t days) { return {date.days + days}; }
constexpr Date operator-(Date date, std::int64_t days) { return {date.days - days}; }
// Days from the right one to the left one.
constexpr std::int64_t operator-(Date later, Date earlier) { return later.days - earlier.days; }

// Four digits, two, two, with hyphens, of a day that exists: anything else is nothing.
std::optional<Date> date_from_text(std::string_view text);
std::string to_text(Date date);  // "2024-11-01"

// Error unless the text is a date.
Date read_date(const JsonValue& at);

// A sourced value as read_sourced reads it, whose value, low and high are dates.
Sourced<Date> read_sourced_date(const JsonValue& at);

}  // namespace orrery
