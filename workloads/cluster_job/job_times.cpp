// SPDX-License-Identifier: Apache-2.0
// Reads times as traces of jobs write them, exactly where they are decimals.
#include "workloads/cluster_job/job_times.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/base/date.h"
#include "workloads/cluster_job/job_clock.h"

namespace orrery {
namespace {

constexpr std::int64_t second_us = 1'000'000, minute_us = 60 * second_us;

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Of `least` to `most` digits, nothing else; at most 18.
std::optional<std::int64_t> digits(std::string_view text, std::size_t least, std::size_t most) {
  if (text.size() < least || text.size() > most || !all_digits(text)) return std::nullopt;
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "123.4567" without sign and exponent, as it stands: a double of many years is too coarse. What
// has more digits before the point is beyond most_fleet_time.
std::optional<FleetTime> plain_decimal(std::string_view text) {
  constexpr std::size_t kept = 6;
  const std::size_t point = std::min(text.find('.'), text.size());
  const auto whole = digits(text.substr(0, point), 1, 11);
  const std::string_view part = text.substr(std::min(point + 1, text.size()));
  if (!whole || !all_digits(part)) return std::nullopt;
  std::int64_t us = *whole * second_us, unit = second_us / 10;
  for (std::size_t i = 0; i < std::min(part.size(), kept); ++i, unit /= 10)
    us += unit * (part[i] - '0');
  if (part.size() > kept && part[kept] >= '5') ++us;
  return FleetTime{us};
}

// "HH:MM:SS"; the hours may be many, or not there where `short_too`.
std::optional<FleetTime> clock_time(std::string_view text, bool short_too) {
  const std::size_t last = text.rfind(':');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const std::size_t before = text.rfind(':', last - 1);
  if (before == std::string_view::npos && !short_too) return std::nullopt;
  const std::size_t minute_at = before == std::string_view::npos ? 0 : before + 1;
  const auto hours = minute_at == 0 ? 0 : digits(text.substr(0, before), 1, 7);
  const std::size_t least = before == std::string_view::npos ? 1 : 2;  // squeue prints 5:00
  const auto minutes = digits(text.substr(minute_at, last - minute_at), least, 2);
  const auto seconds = digits(text.substr(last + 1), 2, 2);
  if (!hours || !minutes || !seconds || *minutes > 59 || *seconds > 59) return std::nullopt;
  return FleetTime{*hours * hour_us + *minutes * minute_us + *seconds * second_us};
}

}  // namespace

std::optional<FleetTime> fleet_seconds(std::string_view text) {
  constexpr FleetTime beyond{most_fleet_time.us + 1};
  if (const auto plain = plain_decimal(text)) return std::min(*plain, beyond);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  const double us = value * static_cast<double>(second_us);
  if (std::abs(us) > static_cast<double>(most_fleet_time.us))
    return us > 0 ? beyond : FleetTime{} - beyond;
  const std::int64_t rounded = std::llround(us);
  return FleetTime{value < 0 ? std::min<std::int64_t>(rounded, -1) : rounded};
}

std::optional<FleetTime> fleet_clock(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return clock_time(text, true);
  const auto days = digits(text.substr(0, dash), 1, 7);
  const auto rest = clock_time(text.substr(dash + 1), false);
  if (!days || !rest) return std::nullopt;
  return FleetTime{*days * day_us} + *rest;
}

std::optional<FleetTime> fleet_stamp(std::string_view text, char between) {
  constexpr std::size_t date_size = 10, full_size = 19;
  if (text.size() != full_size || text[date_size] != between) return std::nullopt;
  const auto date = date_from_text(text.substr(0, date_size));
  const auto clock = clock_time(text.substr(date_size + 1), false);
  if (!date || !clock || clock->us >= day_us) return std::nullopt;
  return FleetTime{date->days * day_us} + *clock;
}

}  // namespace orrery
