// SPDX-License-Identifier: Apache-2.0
// Reads symptoms off clocks and memory of the devices.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "sim/base/statistics.h"
#include "sim/base/text/words.h"
#include "sim/diagnose/observed/observations.h"

namespace orrery {
namespace {

using observe::Counter;
using observe::CounterLog;

// Below this share of its highest power a device did nothing.
constexpr double busy_power = 0.5;

using Power = std::map<std::string, std::map<double, double>>;  // watts by device and time

Power power_of(const CounterLog& log) {
  Power power;
  for (const auto* series : log.of(Counter::power))
    for (const auto& reading : series->readings)
      power[series->host + "/" + series->device][reading.time_s] = reading.value;
  return power;
}

// A tool lists all devices of a host, also those that the run does not use: these draw least.
std::set<std::string> used_devices(const CounterLog& log, const Power& power, std::size_t gpus) {
  std::vector<std::pair<double, std::string>> devices;
  for (const auto* series : log.of(Counter::sm_clock)) {
    const std::string name = series->host + "/" + series->device;
    double sum = 0;
    const auto watts = power.find(name);
    if (watts != power.end())
      for (const auto& [time, value] : watts->second)
        sum += value / static_cast<double>(watts->second.size());
    devices.emplace_back(-sum, name);
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (devices.size() > gpus) devices.resize(gpus);
  std::set<std::string> used;
  for (const auto& [watts, name] : devices) used.insert(name);
  return used;
}

// The median over time of each device that the run uses, in the order of hosts and devices; while
// the device worked, where its power tells.
std::vector<std::optional<double>> medians(const CounterLog& log, Counter counter,
                                           std::size_t gpus) {
  Power power = power_of(log);
  const std::set<std::string> used = used_devices(log, power, gpus);
  std::vector<std::optional<double>> out;
  for (const auto* series : log.of(counter)) {
    if (!used.empty() && !used.contains(series->host + "/" + series->device)) continue;
    const auto& watts = power[series->host + "/" + series->device];
    double most = 0;
    for (const auto& [time, value] : watts) most = std::max(most, value);
    std::vector<double> values;
    for (const auto& reading : series->readings) {
      const auto at = watts.find(reading.time_s);
      if (at == watts.end() || at->second >= busy_power * most) values.push_back(reading.value);
    }
    out.push_back(values.empty() ? std::nullopt : std::optional(median(values)));
  }
  return out;
}

// Counters that only rise where something is wrong, and what that is.
struct ErrorCounter {
  Counter counter;
  const char* trouble;
};
constexpr ErrorCounter error_counters[] = {
    {Counter::port_symbol_errors, "port errors"}, {Counter::port_receive_errors, "port errors"},
    {Counter::port_link_downed, "port errors"},   {Counter::port_link_recoveries, "port errors"},
    {Counter::port_retransmits, "port errors"},   {Counter::nvlink_crc_errors, "NVLink errors"},
    {Counter::nvlink_replays, "NVLink errors"},   {Counter::nvlink_recoveries, "NVLink errors"},
    {Counter::ecc_corrected, "ECC errors"},       {Counter::ecc_uncorrected, "ECC errors"},
    {Counter::remapped_corrected, "ECC errors"},  {Counter::remapped_uncorrected, "ECC errors"},
};

// From the first reading of a counter to its last; nothing where there is one.
struct Rise {
  double count = 0, seconds = 0;
};
Rise rise_of(const observe::CounterSeries& series) {
  if (series.readings.empty()) return {};
  const auto &first = series.readings.front(), &last = series.readings.back();
  return {.count = last.value - first.value, .seconds = last.time_s - first.time_s};
}

// The most errors of a bit that links are allowed (ibdiagnet's default threshold, --ber_thresh).
constexpr double allowed_errors = 1e-12;

// By how much symbols of a port are wrong more often than that, were it busy all the time.
double over_allowed(const Rise& rise, double bits_per_second) {
  const double bits = rise.seconds * bits_per_second;
  return bits > 0 ? rise.count / (allowed_errors * bits) : 0;
}

std::string place_of(const observe::CounterSeries& series) {
  return series.host.empty() ? series.device : fmt::format("{} {}", series.host, series.device);
}

std::string risen(const observe::CounterSeries& series, bool has_clock) {
  const Rise rise = rise_of(series);
  return fmt::format("{}: {} rose by {} in {}", place_of(series),
                     observe::counter_text[series.counter], grouped(std::llround(rise.count)),
                     has_clock ? to_text(Seconds(rise.seconds))
                               : fmt::format("{} samples", series.readings.size()));
}

bool is_hot(const observe::CounterSeries& series) {
  using observe::ThrottleReason;
  return std::any_of(series.readings.begin(), series.readings.end(), [](const auto& reading) {
    return observe::is_throttled_by(reading.value, ThrottleReason::software_thermal) ||
           observe::is_throttled_by(reading.value, ThrottleReason::hardware_thermal);
  });
}

}  // namespace

std::vector<NamedTrouble> troubles_of(const std::vector<CounterLog>& logs, BytesPerSecond port) {
  std::vector<NamedTrouble> named;
  for (const CounterLog& log : logs) {
    for (const ErrorCounter& error : error_counters)
      for (const auto* series : log.of(error.counter))
        if (rise_of(*series).count > 0)
          named.push_back({error.trouble, risen(*series, log.has_clock)});
    for (const auto* series : log.of(Counter::throttle_reasons))
      if (is_hot(*series)) named.push_back({"heat", fmt::format("{}: hot", place_of(*series))});
    if (!log.has_clock) continue;
    for (const auto* series : log.of(Counter::port_symbol_errors))
      if (const double over = over_allowed(rise_of(*series), 8 * port.si()); over > 1)
        named.push_back(
            {port_beyond_allowed,
             fmt::format("{}: {} times the wrong symbols that a link is allowed (one of "
                         "10^12 bits)",
                         place_of(*series), grouped(std::llround(over)))});
  }
  return named;
}

void read_counters_of(const std::vector<CounterLog>& logs, std::size_t gpus,
                      const RunState& healthy, Readings& readings) {
  const std::size_t ranks = healthy.ranks.size();
  for (const CounterLog& log : logs) {
    std::vector<std::optional<double>> clocks = medians(log, Counter::sm_clock, gpus);
    if (clocks.size() == ranks && healthy.clock_hz > 0) {
      for (auto& clock : clocks)
        if (clock) clock = std::log(std::max(1e-3, *clock / healthy.clock_hz));
      add_of_ranks(readings, Symptom::clock, clocks);
    }
    std::vector<std::optional<double>> memory = medians(log, Counter::memory_used, gpus);
    if (memory.size() == ranks && ranks > 1) {
      double least = 1e300;
      for (const auto& used : memory) least = std::min(least, used.value_or(1e300));
      for (auto& used : memory)
        if (used) used = (*used - least) / 1e9;
      add_of_ranks(readings, Symptom::foreign_memory, memory);
    }
  }
}

}  // namespace orrery
