// SPDX-License-Identifier: Apache-2.0
// Reads numbers, times and cells out of lines.
#include "sim/observe/input/words.h"

#include <charconv>
#include <cmath>

#include "sim/base/date.h"

namespace orrery::observe {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// A number of `digits` digits at a place, or -1.
int digits_at(std::string_view text, std::size_t at, std::size_t digits) {
  int value = 0;
  if (at + digits > text.size()) return -1;
  for (std::size_t i = at; i < at + digits; ++i) {
    if (!is_digit(text[i])) return -1;
    value = 10 * value + (text[i] - '0');
  }
  return value;
}

// "10:00:00.123" or with a comma, as seconds of the day.
std::optional<double> time_of_day(std::string_view text, std::size_t at) {
  const int hours = digits_at(text, at, 2), minutes = digits_at(text, at + 3, 2),
            whole = digits_at(text, at + 6, 2);
  if (hours < 0 || minutes < 0 || whole < 0 || text[at + 2] != ':' || text[at + 5] != ':')
    return std::nullopt;
  if (hours > 24 || minutes > 59 || whole > 60) return std::nullopt;
  double value = 3600.0 * hours + 60.0 * minutes + whole;
  std::size_t i = at + 8;
  if (i < text.size() && (text[i] == '.' || text[i] == ',')) {
    double place = 0.1;
    for (++i; i < text.size() && is_digit(text[i]) && place > 1e-10; ++i, place /= 10)
      value += place * (text[i] - '0');
  }
  return value;
}

std::optional<std::int64_t> whole(std::optional<double> value) {
  return value && *value == std::floor(*value) ? whole_part(value) : std::nullopt;
}

std::optional<double> day_seconds(int year, int month, int day) {
  if (year < 1970 || month < 1 || day < 1) return std::nullopt;
  const auto two = [](int n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  const auto date = date_from_text(std::to_string(year) + "-" + two(month) + "-" + two(day));
  if (!date) return std::nullopt;
  return 86400.0 * static_cast<double>(date->days);
}

}  // namespace

std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  std::size_t start = 0;
  bool quoted = false;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (quoted || line[i] != separator)) continue;
    std::string_view cell = trimmed(line.substr(start, i - start));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
      cell = cell.substr(1, cell.size() - 2);
    cells.push_back(cell);
    start = i + 1;
  }
  return cells;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < line.size();) {
    while (i < line.size() && is_blank(line[i])) ++i;
    const std::size_t start = i;
    while (i < line.size() && !is_blank(line[i])) ++i;
    if (i > start) words.push_back(line.substr(start, i - start));
  }
  return words;
}

std::optional<double> leading_number(std::string_view text, std::string_view* rest) {
  std::size_t end = 0;
  std::string plain;  // without the commas of thousands
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  if (at(0) == '+' || at(0) == '-') {
    if (at(0) == '-') plain += '-';
    end = 1;
  }
  const std::size_t first = end;
  for (; is_digit(at(end)) || at(end) == '.' || at(end) == ','; ++end) {
    if (at(end) == ',') {
      const bool thousands = end > first && digits_at(text, end + 1, 3) >= 0 &&
                             !is_digit(at(end + 4)) && plain.find('.') == std::string::npos;
      if (!thousands) break;
    } else {
      plain += at(end);
    }
  }
  if (end == first || plain.size() > 400) return std::nullopt;
  if ((at(end) == 'e' || at(end) == 'E')) {
    std::size_t power = end + 1;
    if (at(power) == '+' || at(power) == '-') ++power;
    if (is_digit(at(power))) {
      plain += 'e';
      for (std::size_t i = end + 1; i < power || is_digit(at(i)); ++i) {
        if (at(i) != '+') plain += at(i);
        end = i + 1;
      }
    }
  }
  double value = 0;
  const auto [stop, problem] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (problem != std::errc{} || stop != plain.data() + plain.size() || !std::isfinite(value))
    return std::nullopt;
  if (rest != nullptr) *rest = text.substr(end);
  return value;
}

std::optional<double> number_in(std::string_view text) {
  std::string_view rest;
  const auto value = leading_number(trimmed(text), &rest);
  return value && trimmed(rest).empty() ? value : std::nullopt;
}

std::optional<std::int64_t> whole_part(std::optional<double> number) {
  constexpr double largest = 9.0e15;
  if (!number || std::abs(*number) > largest) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<std::int64_t> whole_number_in(std::string_view text) {
  return whole(number_in(text));
}

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return leading_number(trimmed(line.substr(at + key.size())));
}

std::optional<std::int64_t> whole_number_after(std::string_view line, std::string_view key) {
  return whole(number_after(line, key));
}

std::optional<double> clock_in(std::string_view line) {
  for (std::size_t i = 0; i + 19 <= line.size(); ++i) {
    const char between = line[i + 4];
    if ((between != '-' && between != '/') || line[i + 7] != between) continue;
    if (i > 0 && is_digit(line[i - 1])) continue;
    const char gap = line[i + 10];
    if (gap != ' ' && gap != 'T' && gap != '_') continue;
    const auto day =
        day_seconds(digits_at(line, i, 4), digits_at(line, i + 5, 2), digits_at(line, i + 8, 2));
    const auto time = time_of_day(line, i + 11);
    if (day && time) return *day + *time;
  }
  return std::nullopt;
}

std::optional<double> clock_of(std::string_view date, std::string_view time) {
  const auto day = date.size() == 8 ? day_seconds(digits_at(date, 0, 4), digits_at(date, 4, 2),
                                                  digits_at(date, 6, 2))
                                    : std::nullopt;
  const auto seconds = time.size() >= 8 ? time_of_day(time, 0) : std::nullopt;
  if (!day || !seconds) return std::nullopt;
  return *day + *seconds;
}

}  // namespace orrery::observe
