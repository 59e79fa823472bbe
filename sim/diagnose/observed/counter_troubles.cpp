// SPDX-License-Identifier: Apache-2.0
// Names what counters of devices and ports say is wrong, each with its place.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/base/statistics.h"
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
    {Counter::port_symbol_errors, port_errors},  {Counter::port_receive_errors, port_errors},
    {Counter::port_link_downed, port_errors},    {Counter::port_link_recoveries, port_errors},
    {Counter::port_retransmits, port_errors},    {Counter::nvlink_crc_errors, "NVLink errors"},
    {Counter::nvlink_replays, "NVLink errors"},  {Counter::nvlink_recoveries, "NVLink errors"},
    {Counter::ecc_corrected, "ECC errors"},      {Counter::ecc_uncorrected, "ECC errors"},
    {Counter::remapped_corrected, "ECC errors"}, {Counter::remapped_uncorrected, "ECC errors"},
    {Counter::retired_pages, "ECC errors"},
};

// Of healthy ports, so many count something wrong (30 of 15,735 in one cluster,
// github.com/wuchanghui5220/pot at 2d4c7b5e, tested.md).
constexpr double wrong_by_chance = 30.0 / 15735;

// Whether so many of the ports count something wrong by chance: likelier than one of a hundred.
bool is_by_chance(std::size_t wrong, std::size_t ports) {
  constexpr double rare = 0.01;
  const double mean = wrong_by_chance * static_cast<double>(ports);
  double fewer = 0, term = std::exp(-mean);
  for (std::size_t i = 0; i < wrong; ++i) {
    fewer += term;
    term *= mean / static_cast<double>(i + 1);
  }
  return 1 - fewer > rare;
}

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

// A port over time: its slowest rate, and what it sent and how often it was told of congestion.
struct Port {
  std::string place, device;
  double rate = 0, sent = 0, marks = 0;
  double sent_per_second = 0;  // files of hosts may last unlike long
  bool has_rate = false, has_sent = false, has_marks = false;
};

void add_ports(const CounterLog& log, std::vector<Port>& all) {
  std::map<std::string, Port> ports;
  const auto each = [&](Counter counter, auto&& take) {
    for (const CounterSeries* series : log.of(counter)) {
      if (series->readings.empty()) continue;
      Port& port = ports[place_of(*series)];
      port.place = place_of(*series);
      port.device = series->device;
      take(port, *series);
    }
  };
  each(Counter::port_rate, [](Port& port, const CounterSeries& series) {
    port.has_rate = true;
    port.rate = series.readings.front().value;
    for (const auto& reading : series.readings) port.rate = std::min(port.rate, reading.value);
  });
  each(Counter::port_sent, [](Port& port, const CounterSeries& series) {
    const Rise rise = rise_of(series);
    port.sent = rise.count;
    port.sent_per_second = rise.seconds > 0 ? rise.count / rise.seconds : 0;
    port.has_sent = series.readings.size() > 1 && port.sent >= 0;  // else it was reset meanwhile
  });
  each(Counter::port_congestion_marks, [](Port& port, const CounterSeries& series) {
    port.has_marks = series.readings.size() > 1;
    port.marks += rise_of(series).count;
  });
  for (auto& [place, port] : ports) all.push_back(std::move(port));
}

// What the run's ports send: the median over kinds of ports of what the busiest of each sends. One
// that carries a dead neighbour's part too sends twice as much as the run's others.
double usual_traffic(const std::vector<Port>& ports) {
  std::map<std::string, double> busiest;  // by the name that hosts give it
  for (const Port& port : ports)
    if (port.has_sent) busiest[port.device] = std::max(busiest[port.device], port.sent_per_second);
  std::vector<double> all;
  for (const auto& [device, sent] : busiest) all.push_back(sent);
  return all.empty() ? 0 : median(all);
}

// Ports whose rate is below that of the NICs of the run. One that has half of the usual traffic, or
// more, is one of the run's; hosts have others, for storage. Where all are below, the run has other
// NICs than were predicted, and none of them is at fault.
void name_slow_ports(const std::vector<Port>& ports, BytesPerSecond nic,
                     std::vector<NamedTrouble>& named) {
  constexpr double rounding = 0.99;
  const double usual = usual_traffic(ports);
  double fastest = 0;
  const auto is_used = [&](const Port& port) {
    return usual > 0 && port.sent_per_second >= usual / 2;
  };
  for (const Port& port : ports)
    if (port.has_rate && is_used(port)) fastest = std::max(fastest, port.rate);
  for (const Port& port : ports) {
    if (!port.has_rate || !is_used(port) || port.rate >= rounding * nic.si()) continue;
    named.push_back({port.rate < rounding * fastest ? port_is_slow : "",
                     fmt::format("{}: the port runs at {:.0f} Gb/s, predicted are NICs of {:.0f}",
                                 port.place, 8e-9 * port.rate, 8e-9 * nic.si())});
  }
}

// Ports that send next to nothing where those of the same name on other hosts send much: their NIC
// is down, and others carry what it should.
void name_silent_ports(const std::vector<Port>& ports, std::vector<NamedTrouble>& named) {
  constexpr double silent = 0.02;
  std::map<std::string, std::vector<const Port*>> like;
  for (const Port& port : ports)
    if (port.has_sent) like[port.device].push_back(&port);
  const double run = usual_traffic(ports);
  for (const auto& [device, alike] : like) {
    const Port& busiest = **std::max_element(
        alike.begin(), alike.end(),
        [](const Port* a, const Port* b) { return a->sent_per_second < b->sent_per_second; });
    const double usual = busiest.sent_per_second;
    if (usual <= 0 || usual < run / 2) continue;  // none of the run's
    for (const Port* port : alike)
      if (port->sent_per_second < silent * usual)
        named.push_back({port_is_slow, fmt::format("{}: the port sent {}, {} of another host {}",
                                                   port->place, to_text(Bytes(port->sent)), device,
                                                   to_text(Bytes(busiest.sent)))});
  }
}

// Ports that are told to slow down again and again: so many marks of packets of a network's usual
// size. Judged: where flows do not meet, marks are a few of a million.
void name_congested_ports(const std::vector<Port>& ports, std::vector<NamedTrouble>& named) {
  constexpr double packet = 4096, allowed = 1e-3;
  for (const Port& port : ports) {
    if (!port.has_marks || !port.has_sent || port.sent <= 0) continue;
    const double share = port.marks * packet / port.sent;
    if (share > allowed)
      named.push_back({port_is_congested,
                       fmt::format("{}: {:.1f} marks of congestion for 1,000 packets of 4 KiB",
                                   port.place, 1e3 * share)});
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

std::vector<NamedTrouble> troubles_of(const std::vector<CounterLog>& logs, BytesPerSecond nic) {
  std::vector<NamedTrouble> named;
  std::vector<Port> ports;            // of all hosts, which may have a file each
  std::map<std::string, bool> wrong;  // of each port that counts errors
  for (const CounterLog& log : logs) {
    for (const ErrorCounter& error : error_counters)
      for (const auto* series : log.of(error.counter)) {
        const bool rises = rise_of(*series).count > 0;
        if (std::string_view(error.trouble) == port_errors) wrong[place_of(*series)] |= rises;
        if (rises) named.push_back({error.trouble, risen(*series, log.has_clock)});
      }
    add_ports(log, ports);
    name_states(log, named);
    name_narrow_slots(log, named);
    if (!log.has_clock) continue;
    for (const auto* series : log.of(Counter::port_symbol_errors))
      if (const double over = over_allowed(rise_of(*series), 8 * nic.si()); over > 1)
        named.push_back(
            {port_beyond_allowed,
             fmt::format("{}: {} times the wrong symbols that a link is allowed (one of "
                         "10^12 bits)",
                         place_of(*series), grouped(std::llround(over)))});
  }
  const auto ports_wrong =
      std::count_if(wrong.begin(), wrong.end(), [](const auto& port) { return port.second; });
  if (is_by_chance(static_cast<std::size_t>(ports_wrong), wrong.size()))
    for (NamedTrouble& one : named)
      if (one.trouble == port_errors) one.trouble.clear();  // it is told, and counts for nothing
  name_slow_ports(ports, nic, named);
  name_silent_ports(ports, named);
  name_congested_ports(ports, named);
  return named;
}

}  // namespace orrery
