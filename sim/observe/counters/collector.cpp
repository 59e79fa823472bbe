// SPDX-License-Identifier: Apache-2.0
// Keeps readings by host, device and quantity.
#include "sim/observe/counters/collector.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/observe/input/words.h"

namespace orrery::observe {
namespace {

// 16 bytes each: a gibibyte of readings is half a year of a hundred quantities of eight GPUs, each
// minute of it, ten times over.
constexpr std::size_t most_readings = 64'000'000;
constexpr std::size_t most_unknown = 2000;

// DCGM writes a blank as the largest numbers of a type, less a reason (dcgm_structs.h).
bool is_blank_of_dcgm(double value) {
  return value >= 9.2233720368547e18 || (value >= 140737488355328.0 && value < 140737488355344.0) ||
         (value >= 2147483632.0 && value <= 2147483647.0);
}

}  // namespace

Cell cell_of(std::string_view text) {
  text = trimmed(text);
  constexpr std::array<std::string_view, 14> blanks = {"",
                                                       "-",
                                                       "[N/A]",
                                                       "N/A",
                                                       "[Not Supported]",
                                                       "[Unknown Error]",
                                                       "Not Supported",
                                                       "NaN",
                                                       "nan",
                                                       "+Inf",
                                                       "null",
                                                       "[GPU is lost]",
                                                       "[Insufficient Permissions]",
                                                       "undefined"};
  for (const std::string_view blank : blanks)
    if (text == blank) return {.kind = Cell::Kind::missing};
  const auto value = [](double number) -> Cell {
    if (is_blank_of_dcgm(number)) return {.kind = Cell::Kind::missing};
    return {.kind = Cell::Kind::value, .value = number};
  };
  if (text == "Active" || text == "Yes" || text == "Enabled") return value(1);
  if (text == "Not Active" || text == "No" || text == "Disabled") return value(0);
  if (text.starts_with("0x")) {
    std::uint64_t bits = 0;
    const auto [end, problem] =
        std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (problem == std::errc{} && end == text.data() + text.size())
      return value(static_cast<double>(bits));
    return {};
  }
  if (text.size() <= 3 && text.front() == 'P')
    if (const auto state = number_in(text.substr(1))) return value(*state);
  std::string_view rest;
  const auto number = leading_number(text, &rest);
  if (!number) return {};
  rest = trimmed(rest);
  // A unit: letters, "/" and "%".
  for (const char c : rest) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '%';
    if (!letter || rest.size() > 6) return {};
  }
  return value(*number);
}

Collector::Collector(std::string file, CounterSource source) {
  log_.file = std::move(file);
  log_.source = source;
}

void Collector::add(const Field& field, const std::string& host, const std::string& device,
                    const std::string& instance, double time_s, const Cell& cell) {
  std::string which(field.instance);
  if (!instance.empty()) which += (which.empty() ? "" : " ") + instance;
  const auto [at, is_new] = series_.try_emplace(Key{host, device, field.counter, which});
  CounterSeries& series = at->second;
  if (is_new)
    series = {.counter = field.counter, .host = host, .device = device, .instance = which};
  if (cell.kind != Cell::Kind::value) {
    ++series.missing;
    return;
  }
  if (readings_ >= most_readings) {
    ++left_out_;
    return;
  }
  ++readings_;
  series.readings.push_back({.time_s = time_s, .value = cell.value * field.scale});
  devices_.try_emplace({host, device}, CounterDevice{.host = host, .device = device});
}

void Collector::name_device(const std::string& host, const std::string& device,
                            std::optional<std::string> name, std::optional<std::string> uuid) {
  CounterDevice& known =
      devices_.try_emplace({host, device}, CounterDevice{.host = host, .device = device})
          .first->second;
  if (name && !known.name) known.name = std::move(name);
  if (uuid && !known.uuid) known.uuid = std::move(uuid);
}

void Collector::unknown(std::string_view column) {
  if (unknown_.size() < most_unknown) unknown_.emplace(column.substr(0, 200));
}

void Collector::note(std::string text) { log_.notes.push_back(std::move(text)); }

void Collector::refuse(std::size_t line, std::string found, std::string expected) const {
  throw Error({.file = log_.file,
               .path = fmt::format("line {}", line),
               .found = std::move(found),
               .expected = std::move(expected)});
}

void Collector::refuse_cell(std::size_t line, std::string_view column,
                            std::string_view cell) const {
  throw Error({.file = log_.file,
               .path = fmt::format("line {}, column {}", line, in_quotes(column)),
               .found = in_quotes(cell),
               .expected = "a number, or a blank as the tool writes it (\"[N/A]\", \"-\")"});
}

CounterLog Collector::finish(bool has_clock, bool cut) {
  if (readings_ == 0)
    throw Error({.file = log_.file,
                 .found = "no reading of a known quantity",
                 .expected = "clocks, power, temperatures, activity or error counters"});
  log_.has_clock = has_clock;
  for (auto& [key, device] : devices_) log_.devices.push_back(std::move(device));
  for (auto& [key, series] : series_) log_.series.push_back(std::move(series));
  log_.unknown.assign(unknown_.begin(), unknown_.end());
  if (cut) note("The packed file ends early: its last readings are missing.");
  if (left_out_ > 0)
    note(fmt::format("{} readings beyond {} were left out.", left_out_, most_readings));
  return std::move(log_);
}

}  // namespace orrery::observe
