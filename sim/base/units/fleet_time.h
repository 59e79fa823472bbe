// SPDX-License-Identifier: Apache-2.0
// Knows time of a cluster's days and months: in whole millionths of a second.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "sim/base/units/units.h"

namespace orrery {

[[noreturn]] void fleet_time_overflow();  // throws the Error of a time beyond 292,000 years

// A point in or a span of the time that jobs of a cluster take. Picoseconds (ticks.h) end at 106
// days and stay inside a step; these reach 292,000 years. Sums throw
// Error beyond that.
struct FleetTime {
  std::int64_t us = 0;
  constexpr auto operator<=>(const FleetTime&) const = default;
  constexpr FleetTime operator+(FleetTime o) const {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(us, o.us, &sum)) fleet_time_overflow();
    return {sum};
  }
  constexpr FleetTime operator-(FleetTime o) const { return {us - o.us}; }
  constexpr FleetTime& operator+=(FleetTime o) { return *this = *this + o; }
};

// Of one job: a longer one is a mistake of its record.
inline constexpr FleetTime most_fleet_time{INT64_C(1'000) * 365 * 86'400 * 1'000'000};
inline constexpr FleetTime fleet_never{INT64_MAX};

// Rounded; fleet_never where that is beyond its reach.
FleetTime to_fleet_time(Seconds s);
constexpr Seconds to_seconds(FleetTime t) { return Seconds(static_cast<double>(t.us) * 1e-6); }

inline std::string to_text(FleetTime t) { return to_text(to_seconds(t)); }

// GPUs times millionths of a second: a million GPUs for a year pass 64 bits.
using GpuMicros = __int128;
inline double gpu_hours(GpuMicros time) { return static_cast<double>(time) / 3.6e9; }

}  // namespace orrery
