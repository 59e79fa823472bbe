// SPDX-License-Identifier: Apache-2.0
// Counts the samples in which drivers say that clocks are held down, and says what to do.
#include "sim/diagnose/observed/held_clocks.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "sim/base/statistics.h"
#include "sim/base/text/words.h"
#include "sim/diagnose/observed/at_work.h"

namespace orrery {
namespace {

using observe::Counter;
using observe::CounterLog;
using observe::CounterSeries;
using observe::ThrottleReason;

constexpr std::size_t holders = clock_holder_text.count;

// Hardware slows down by heat, by the power brake or by itself: its bit stands beside theirs.
bool holds(ClockHolder holder, double bits) {
  const auto has = [bits](ThrottleReason reason) { return observe::is_throttled_by(bits, reason); };
  const bool hot = has(ThrottleReason::software_thermal) || has(ThrottleReason::hardware_thermal);
  const bool brake = has(ThrottleReason::power_brake);
  switch (holder) {
    case ClockHolder::power_brake:
      return brake;
    case ClockHolder::heat:
      return hot;
    case ClockHolder::hardware:
      return has(ThrottleReason::hardware) && !hot && !brake;
    case ClockHolder::power_cap:
      return has(ThrottleReason::power_cap);
    case ClockHolder::set_clocks:
      return has(ThrottleReason::application_clocks);
  }
  return false;
}

// Columns of their own for reasons, by the names that the reader gives them.
std::optional<ClockHolder> holder_named(const std::string& instance) {
  if (instance == "power brake") return ClockHolder::power_brake;
  if (instance == "hardware thermal" || instance == "software thermal") return ClockHolder::heat;
  if (instance == "hardware") return ClockHolder::hardware;
  if (instance == "power cap") return ClockHolder::power_cap;
  if (instance == "clock setting") return ClockHolder::set_clocks;
  return std::nullopt;
}

// The mean over samples at work of what a reading says.
template <class Of>
double mean_at_work(const AtWork& at_work, const CounterSeries& series, const Of& of) {
  double sum = 0, count = 0;
  for (const auto& reading : series.readings)
    if (at_work.worked(series, reading.time_s)) {
      sum += of(reading.value);
      ++count;
    }
  return count > 0 ? sum / count : 0;
}

HeldDevice& device_of(std::vector<HeldDevice>& devices, const std::string& place) {
  const auto known = std::find_if(devices.begin(), devices.end(),
                                  [&](const HeldDevice& d) { return d.place == place; });
  if (known != devices.end()) return *known;
  devices.push_back({.place = place});
  return devices.back();
}

void read_held(const CounterLog& log, const AtWork& at_work, std::vector<HeldDevice>& devices) {
  const auto add = [&](const CounterSeries& series, ClockHolder holder, double share) {
    double& known = device_of(devices, place_of(series)).share[static_cast<std::size_t>(holder)];
    known = std::max(known, std::min(1.0, share));
  };
  for (const CounterSeries* series : at_work.of(Counter::throttle_reasons))
    for (std::size_t i = 0; i < holders; ++i) {
      const auto holder = static_cast<ClockHolder>(i);
      add(*series, holder,
          mean_at_work(at_work, *series, [&](double bits) { return holds(holder, bits) ? 1 : 0; }));
    }
  const auto itself = [](double value) { return value; };
  for (const CounterSeries* series : at_work.of(Counter::throttled))
    if (const auto holder = holder_named(series->instance))
      add(*series, *holder, mean_at_work(at_work, *series, itself));
  // The column of hardware is active with those of heat and of the brake.
  for (const CounterSeries* series : at_work.of(Counter::throttled)) {
    if (series->instance != "hardware") continue;
    HeldDevice& device = device_of(devices, place_of(*series));
    const double known =
        std::max(device.share_of(ClockHolder::heat), device.share_of(ClockHolder::power_brake));
    double& own = device.share[static_cast<std::size_t>(ClockHolder::hardware)];
    own = std::max(0.0, own - known);
  }
  // dmon tells a share of time for power, and whether for heat; DCGM sums in units of its release.
  if (log.source != observe::CounterSource::smi_dmon) return;
  for (const CounterSeries* series : at_work.of(Counter::power_violation))
    add(*series, ClockHolder::power_cap, mean_at_work(at_work, *series, itself));
  for (const CounterSeries* series : at_work.of(Counter::thermal_violation))
    add(*series, ClockHolder::heat, mean_at_work(at_work, *series, itself));
}

void read_limits(const AtWork& at_work, std::vector<HeldDevice>& devices) {
  for (const CounterSeries* series : at_work.of(Counter::power_limit)) {
    std::vector<double> watts;
    for (const auto& reading : series->readings) watts.push_back(reading.value);
    if (watts.empty()) continue;
    auto& limit = device_of(devices, place_of(*series)).power_limit;
    const Watts told(median(watts));
    limit = limit ? std::min(*limit, told) : told;
  }
}

// "88%", "60 to 97%".
std::string range_text(double low, double high) {
  const std::string most = percent(high, 0), least = percent(low, 0);
  return least == most ? most : fmt::format("{} to {}", least.substr(0, least.size() - 1), most);
}

std::string gpus_text(const std::vector<std::string>& places) {
  constexpr std::size_t shown = 4;
  std::vector<std::string> some(
      places.begin(), places.begin() + static_cast<std::ptrdiff_t>(std::min(shown, places.size())));
  std::string text = (places.size() == 1 ? "GPU " : "GPUs ") + joined(some, ", ");
  if (places.size() > shown) text += fmt::format(" and {} more", places.size() - shown);
  return text;
}

bool is_below(const HeldDevice& device, std::optional<Watts> limit) {
  return limit && device.power_limit && *device.power_limit < *limit;
}

// What to do against each, in the order of ClockHolder.
std::string action_of(ClockHolder holder, std::optional<Watts> makers_limit, bool at_makers) {
  switch (holder) {
    case ClockHolder::power_brake:
      return "The host's power supply asks for it: look at power supplies and at the rack's power "
             "limit.";
    case ClockHolder::heat:
      return "Cool the GPU: look at fans, air or water (nvidia-smi -q -d TEMPERATURE).";
    case ClockHolder::hardware:
      return "See what the board protects itself from, heat, its supply or peaks of power: "
             "nvidia-smi -q -d PERFORMANCE.";
    case ClockHolder::power_cap:
      if (at_makers)
        return "Its power limit is its maker's already: hold it against another board (`orrery "
               "calibrate compare`), and look at heat, which draws power.";
      return makers_limit
                 ? fmt::format(
                       "Raise the power limit where it is below the maker's {0:.0f} W: "
                       "nvidia-smi -pl {0:.0f}.",
                       makers_limit->si())
                 : std::string("Raise the power limit: nvidia-smi -q -d POWER, nvidia-smi -pl.");
    case ClockHolder::set_clocks:
      return "Take the clock setting away: nvidia-smi -rac and -rgc.";
  }
  return "";
}

}  // namespace

std::vector<HeldDevice> held_devices(const std::vector<CounterLog>& logs, std::size_t gpus) {
  std::vector<HeldDevice> devices;
  for (const CounterLog& log : logs) {
    const AtWork at_work(log, gpus);
    read_held(log, at_work, devices);
    read_limits(at_work, devices);
  }
  return devices;
}

std::vector<std::string> held_sentences(const std::vector<HeldDevice>& devices,
                                        std::optional<Watts> makers_limit) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < holders; ++i) {
    std::vector<std::string> places;
    double least = 1, most = 0;
    for (const HeldDevice& device : devices) {
      if (device.share[i] <= 0) continue;
      places.push_back(device.place);
      least = std::min(least, device.share[i]);
      most = std::max(most, device.share[i]);
    }
    if (places.empty()) continue;
    out.push_back(fmt::format("{}: {} holds the clock down in {} of samples at work",
                              gpus_text(places), clock_holder_text[static_cast<ClockHolder>(i)],
                              range_text(least, most)));
  }
  std::vector<std::string> capped;
  double least = std::numeric_limits<double>::infinity();
  for (const HeldDevice& device : devices) {
    if (!is_below(device, makers_limit)) continue;
    capped.push_back(device.place);
    least = std::min(least, device.power_limit->si());
  }
  if (!capped.empty())
    out.push_back(fmt::format("{}: the power limit is {:.0f} W, the maker's {:.0f} W",
                              gpus_text(capped), least, makers_limit->si()));
  return out;
}

bool are_held(const std::vector<HeldDevice>& devices, std::optional<Watts> makers_limit) {
  constexpr double most = 0.5;
  return std::any_of(devices.begin(), devices.end(), [&](const HeldDevice& device) {
    return is_below(device, makers_limit) || device.share_of(ClockHolder::set_clocks) > most ||
           device.share_of(ClockHolder::power_brake) > most;
  });
}

std::optional<ClockReason> reason_of(const std::vector<HeldDevice>& devices,
                                     std::optional<Watts> makers_limit) {
  std::array<double, holders> share{};
  for (const HeldDevice& device : devices)
    for (std::size_t i = 0; i < holders; ++i)
      share[i] += device.share[i] / static_cast<double>(devices.size());
  const double most = *std::max_element(share.begin(), share.end());
  if (most <= 0) return std::nullopt;
  const bool at_makers =
      makers_limit && std::all_of(devices.begin(), devices.end(), [&](const HeldDevice& d) {
        return d.power_limit && *d.power_limit >= *makers_limit;
      });
  // Others that hold it nearly as often are named beside the first.
  std::vector<std::string> words;
  ClockReason out;
  for (std::size_t i = 0; i < holders; ++i) {
    if (2 * share[i] < most) continue;
    const auto holder = static_cast<ClockHolder>(i);
    words.push_back(
        fmt::format("{} in {} of samples", clock_holder_text[holder], percent(share[i], 0)));
    out.action += (out.action.empty() ? "" : " ") + action_of(holder, makers_limit, at_makers);
  }
  out.words = joined(words, ", ");
  return out;
}

}  // namespace orrery
