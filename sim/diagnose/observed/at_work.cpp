// SPDX-License-Identifier: Apache-2.0
// Tells devices that a run uses by what they draw.
#include "sim/diagnose/observed/at_work.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery {
namespace {

using observe::Counter;
using observe::CounterSeries;

// Below this share of its highest power a device did nothing.
constexpr double busy_power = 0.5;

std::string key_of(const CounterSeries& series) { return series.host + "/" + series.device; }

}  // namespace

std::string place_of(const CounterSeries& series) {
  return series.host.empty() ? series.device : fmt::format("{} {}", series.host, series.device);
}

AtWork::AtWork(const observe::CounterLog& log, std::size_t gpus) : log_(log) {
  for (const CounterSeries* series : log.of(Counter::power))
    for (const auto& reading : series->readings) {
      power_[key_of(*series)][reading.time_s] = reading.value;
      most_[key_of(*series)] = std::max(most_[key_of(*series)], reading.value);
    }
  std::vector<std::pair<double, std::string>> devices;
  for (const CounterSeries* series : log.of(Counter::sm_clock)) {
    double sum = 0;
    const auto watts = power_.find(key_of(*series));
    if (watts != power_.end())
      for (const auto& [time, value] : watts->second)
        sum += value / static_cast<double>(watts->second.size());
    devices.emplace_back(-sum, key_of(*series));
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (devices.size() > gpus) devices.resize(gpus);
  for (const auto& [watts, name] : devices) used_.insert(name);
}

std::vector<const CounterSeries*> AtWork::of(Counter counter) const {
  std::vector<const CounterSeries*> out;
  for (const CounterSeries* series : log_.of(counter))
    if (used_.empty() || used_.contains(key_of(*series))) out.push_back(series);
  return out;
}

bool AtWork::worked(const CounterSeries& series, double time_s) const {
  const auto watts = power_.find(key_of(series));
  if (watts == power_.end()) return true;
  const auto at = watts->second.find(time_s);
  return at == watts->second.end() || at->second >= busy_power * most_.at(key_of(series));
}

}  // namespace orrery
