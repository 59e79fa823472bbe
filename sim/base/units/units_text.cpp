// SPDX-License-Identifier: Apache-2.0
// Prints quantities for people: three significant digits with a scaled unit.
#include <fmt/format.h>

#include <initializer_list>

#include "sim/base/units/units.h"

namespace orrery {
namespace {

struct Scale {
  double size;
  const char* unit;
};

// Three significant digits; whole numbers keep all digits ("1010 MiB" has no larger unit to go to).
std::string digits(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (size < 1e-3 || size >= 1e6) return fmt::format("{:.2e}", value);
  // Rounded first: 9.996 is written as 10.0.
  const double rounded = std::abs(std::stod(fmt::format("{:.2e}", value)));
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(rounded)));
  return fmt::format("{:.{}f}", value, decimals > 0 ? decimals : 0);
}

// The value in the largest of the scales (from small to large) in which it prints as 1 or more.
std::string scaled(double si, std::initializer_list<Scale> scales) {
  // 999.6 of a unit would be printed as 1000: it goes to the next unit.
  constexpr double rounds_up = 0.9995;
  const Scale* chosen = scales.begin();
  for (const Scale& scale : scales)
    if (std::abs(si) >= scale.size * rounds_up) chosen = &scale;
  return fmt::format("{} {}", digits(si / chosen->size), chosen->unit);
}

}  // namespace

std::string to_text(Seconds t) {
  if (t.si() == 0) return "0 s";
  // Steps of training jobs are compared in seconds up to some minutes.
  constexpr double minute = 60, hour = seconds_per_hour, day = seconds_per_day,
                   year = seconds_per_year;
  if (std::abs(t.si()) < 300)
    return scaled(t.si(), {{1e-12, "ps"}, {1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}});
  if (std::abs(t.si()) < 2 * hour) return scaled(t.si(), {{minute, "min"}});
  if (std::abs(t.si()) < 2 * day) return scaled(t.si(), {{hour, "h"}});
  if (std::abs(t.si()) < 2 * year) return scaled(t.si(), {{day, "days"}});
  return scaled(t.si(), {{year, "years"}});
}

std::string to_text(Bytes b) {
  return scaled(b.si(), {{1, "B"},
                         {0x1p10, "KiB"},
                         {0x1p20, "MiB"},
                         {0x1p30, "GiB"},
                         {0x1p40, "TiB"},
                         {0x1p50, "PiB"},
                         {0x1p60, "EiB"}});
}

std::string to_text(BytesPerSecond r) {
  return scaled(r.si(), {{1, "B/s"},
                         {1e3, "kB/s"},
                         {1e6, "MB/s"},
                         {1e9, "GB/s"},
                         {1e12, "TB/s"},
                         {1e15, "PB/s"},
                         {1e18, "EB/s"}});
}

std::string to_text(FlopPerSecond r) {
  return scaled(r.si(), {{1, "FLOP/s"},
                         {1e3, "kFLOP/s"},
                         {1e6, "MFLOP/s"},
                         {1e9, "GFLOP/s"},
                         {1e12, "TFLOP/s"},
                         {1e15, "PFLOP/s"},
                         {1e18, "EFLOP/s"},
                         {1e21, "ZFLOP/s"}});
}

std::string to_text(Flop n) {
  return scaled(n.si(), {{1, "FLOP"},
                         {1e3, "kFLOP"},
                         {1e6, "MFLOP"},
                         {1e9, "GFLOP"},
                         {1e12, "TFLOP"},
                         {1e15, "PFLOP"},
                         {1e18, "EFLOP"},
                         {1e21, "ZFLOP"},
                         {1e24, "YFLOP"}});
}

std::string to_text(Watts p) {
  return scaled(p.si(), {{1e-3, "mW"}, {1, "W"}, {1e3, "kW"}, {1e6, "MW"}, {1e9, "GW"}});
}

std::string to_text(Joules e) {
  return scaled(e.si(), {{1e-12, "pJ"},
                         {1e-9, "nJ"},
                         {1e-6, "uJ"},
                         {1e-3, "mJ"},
                         {1, "J"},
                         {1e3, "kJ"},
                         {1e6, "MJ"},
                         {1e9, "GJ"},
                         {1e12, "TJ"},
                         {1e15, "PJ"}});
}

// As people write sums: "$711,149", "$41.3 million".
std::string to_text(Dollars d) {
  const double size = std::abs(d.si());
  const char* sign = d.si() < 0 ? "-" : "";
  if (!(size < 1e15)) return "without end";
  if (size > 0 && size < 0.005) return "under a cent";
  if (size >= 999.5e9) return fmt::format("{}${:.3g} trillion", sign, size / 1e12);
  if (size >= 999.5e6) return fmt::format("{}${:.3g} billion", sign, size / 1e9);
  if (size >= 0.9995e6) return fmt::format("{}${:.3g} million", sign, size / 1e6);
  if (size < 999.5) return fmt::format("{}${:.3g}", sign, size);
  const auto whole = static_cast<long long>(std::llround(size));
  return fmt::format("{}${},{:03}", sign, whole / 1000, whole % 1000);
}

std::string to_text(Hertz f) {
  constexpr double hour = seconds_per_hour, day = seconds_per_day, year = seconds_per_year;
  if (f.si() == 0) return "0 Hz";
  // Failure rates are a few per hour, day or year.
  if (std::abs(f.si()) < 1e-2)
    return scaled(
        f.si(),
        {{0.01 / year, "%/year"}, {1 / year, "/year"}, {1 / day, "/day"}, {1 / hour, "/h"}});
  return scaled(f.si(), {{1, "Hz"}, {1e3, "kHz"}, {1e6, "MHz"}, {1e9, "GHz"}, {1e12, "THz"}});
}

}  // namespace orrery
