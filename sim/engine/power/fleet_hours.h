// SPDX-License-Identifier: Apache-2.0
// Knows what changes for a cluster by the hour: what it may draw, what energy costs or emits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/units/fleet_time.h"

namespace orrery {

inline constexpr FleetTime fleet_hour{INT64_C(3'600'000'000)};

// From the start of a run on, hour by hour. All are known ahead: nobody forecasts.
struct FleetHours {
  bool energy = false;                     // energy is kept hour by hour
  std::vector<std::int64_t> limits = {};   // milliwatts; none: the question's limit holds always
  std::vector<std::int64_t> weights = {};  // of energy, to delay jobs by; none: nobody is delayed
};

// Beyond the end the last hour's.
inline std::int64_t at_hour(const std::vector<std::int64_t>& values, FleetTime at) {
  const auto hour = static_cast<std::size_t>(at.us / fleet_hour.us);
  return values[std::min(hour, values.size() - 1)];
}

}  // namespace orrery
