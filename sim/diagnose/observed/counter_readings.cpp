// SPDX-License-Identifier: Apache-2.0
// Reads symptoms off clocks and memory of the devices.
#include <algorithm>
#include <cmath>

#include "sim/base/statistics.h"
#include "sim/diagnose/observed/at_work.h"
#include "sim/diagnose/observed/observations.h"

namespace orrery {
namespace {

using observe::Counter;
using observe::CounterLog;

// The median over time of each device that the run uses, in the order of hosts and devices; while
// the device worked, where its power tells.
std::vector<std::optional<double>> medians(const AtWork& at_work, Counter counter) {
  std::vector<std::optional<double>> out;
  for (const auto* series : at_work.of(counter)) {
    std::vector<double> values;
    for (const auto& reading : series->readings)
      if (at_work.worked(*series, reading.time_s)) values.push_back(reading.value);
    out.push_back(values.empty() ? std::nullopt : std::optional(median(values)));
  }
  return out;
}

}  // namespace

void read_counters_of(const std::vector<CounterLog>& logs, std::size_t gpus,
                      const RunState& healthy, Readings& readings) {
  const std::size_t ranks = healthy.ranks.size();
  for (const CounterLog& log : logs) {
    const AtWork at_work(log, gpus);
    std::vector<std::optional<double>> clocks = medians(at_work, Counter::sm_clock);
    if (clocks.size() == ranks && healthy.clock_hz > 0) {
      for (auto& clock : clocks)
        if (clock) clock = std::log(std::max(1e-3, *clock / healthy.clock_hz));
      add_of_ranks(readings, Symptom::clock, clocks);
    }
    std::vector<std::optional<double>> memory = medians(at_work, Counter::memory_used);
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
