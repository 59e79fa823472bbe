// SPDX-License-Identifier: Apache-2.0
// Sums energy hour by hour, for prices that change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/units/fleet_time.h"

namespace orrery {

// Of each hour, in nanojoules; they sum to the energy of the run.
using EnergyHours = std::vector<__int128>;

// From `from` on so many milliwatts were drawn for so long.
inline void add_energy(EnergyHours& hours, FleetTime from, FleetTime passed,
                       std::int64_t milliwatts) {
  constexpr std::int64_t hour_us = INT64_C(3'600'000'000);
  for (std::int64_t at = from.us; at < (from + passed).us;) {
    const std::int64_t hour = at / hour_us;
    const std::int64_t end = std::min((hour + 1) * hour_us, (from + passed).us);
    if (hours.size() <= static_cast<std::size_t>(hour))
      hours.resize(static_cast<std::size_t>(hour) + 1);
    hours[static_cast<std::size_t>(hour)] +=
        static_cast<__int128>(milliwatts) * static_cast<__int128>(end - at);
    at = end;
  }
}

}  // namespace orrery
