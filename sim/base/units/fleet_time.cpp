// SPDX-License-Identifier: Apache-2.0
// Rounds seconds, and ends what runs for longer than a cluster's time reaches.
#include "sim/base/units/fleet_time.h"

#include <cmath>

#include "sim/base/errors/check.h"

namespace orrery {

FleetTime to_fleet_time(Seconds s) {
  const double us = std::round(s.si() * 1e6);
  return us < static_cast<double>(fleet_never.us) ? FleetTime{static_cast<std::int64_t>(us)}
                                                  : fleet_never;
}

void fleet_time_overflow() {
  throw Error({.file = "schedule",
               .found = "jobs that end after 292,000 years",
               .expected = "lengths that sum to less"});
}

}  // namespace orrery
