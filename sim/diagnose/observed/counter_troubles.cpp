// SPDX-License-Identifier: Apache-2.0
// Names what counters of devices and ports say is wrong, each with its place.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/base/text/words.h"
#include "sim/diagnose/observed/at_work.h"
#include "sim/diagnose/observed/observations.h"

namespace orrery {
namespace {

using observe::Counter;
using observe::CounterLog;
using observe::CounterSeries;

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
    {Counter::retired_pages, "ECC errors"},
};

// From the first reading of a counter to its last; nothing where there is one.
struct Rise {
  double count = 0, seconds = 0;
};
Rise rise_of(const CounterSeries& series) {
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

std::string risen(const CounterSeries& series, bool has_clock) {
  const Rise rise = rise_of(series);
  return fmt::format("{}: {} rose by {} in {}", place_of(series),
                     observe::counter_text[series.counter], grouped(std::llround(rise.count)),
                     has_clock ? to_text(Seconds(rise.seconds))
                               : fmt::format("{} samples", series.readings.size()));
}

// Ports whose rate is below that of the NICs of the run. One that has half the traffic of the
// busiest port, or more, is one of the run's; hosts have others, for storage.
void name_slow_ports(const CounterLog& log, BytesPerSecond port, std::vector<NamedTrouble>& named) {
  std::map<std::string, double> sent;
  double most = 0;
  for (const CounterSeries* series : log.of(Counter::port_sent)) {
    const double bytes = rise_of(*series).count;
    sent[place_of(*series)] = bytes;
    most = std::max(most, bytes);
  }
  for (const CounterSeries* series : log.of(Counter::port_rate)) {
    if (series->readings.empty()) continue;
    double rate = series->readings.front().value;
    for (const auto& reading : series->readings) rate = std::min(rate, reading.value);
    constexpr double rounding = 0.99;
    const bool used = most > 0 && sent[place_of(*series)] >= most / 2;
    if (!used || rate >= rounding * port.si()) continue;
    named.push_back({"port errors", fmt::format("{}: the port runs at {:.0f} Gb/s, predicted are "
                                                "NICs of {:.0f}",
                                                place_of(*series), 8e-9 * rate, 8e-9 * port.si())});
  }
}

// What devices say of themselves that is no count: rows that memory could not replace, and the
// last error that their driver reported.
void name_states(const CounterLog& log, std::vector<NamedTrouble>& named) {
  const auto last = [](const CounterSeries& series) {
    return series.readings.empty() ? 0 : series.readings.back().value;
  };
  for (const CounterSeries* series : log.of(Counter::remap_failed))
    if (last(*series) > 0)
      named.push_back({"ECC errors", fmt::format("{}: rows of its memory could not be remapped",
                                                 place_of(*series))});
  for (const CounterSeries* series : log.of(Counter::remap_pending))
    if (last(*series) > 0)
      named.push_back(
          {"ECC errors", fmt::format("{}: rows of its memory are remapped at the next reset",
                                     place_of(*series))});
  for (const CounterSeries* series : log.of(Counter::last_xid))
    if (last(*series) > 0)
      named.push_back({"", fmt::format("{}: the driver's last error is Xid {:.0f}",
                                       place_of(*series), last(*series))});
}

// Lanes of PCIe that a device lost: it has fewer than the device that has most.
void name_narrow_slots(const CounterLog& log, std::vector<NamedTrouble>& named) {
  std::map<std::string, double> widths;
  double most = 0;
  for (const CounterSeries* series : log.of(Counter::pcie_width))
    for (const auto& reading : series->readings) {
      double& width = widths[place_of(*series)];
      width = std::max(width, reading.value);
      most = std::max(most, width);
    }
  for (const auto& [place, width] : widths)
    if (width > 0 && width < most)
      named.push_back(
          {"", fmt::format("{}: {:.0f} lanes of PCIe, others have {:.0f}", place, width, most)});
}

}  // namespace

std::vector<NamedTrouble> troubles_of(const std::vector<CounterLog>& logs, BytesPerSecond port) {
  std::vector<NamedTrouble> named;
  for (const CounterLog& log : logs) {
    for (const ErrorCounter& error : error_counters)
      for (const auto* series : log.of(error.counter))
        if (rise_of(*series).count > 0)
          named.push_back({error.trouble, risen(*series, log.has_clock)});
    name_slow_ports(log, port, named);
    name_states(log, named);
    name_narrow_slots(log, named);
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

}  // namespace orrery
