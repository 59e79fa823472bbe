// SPDX-License-Identifier: Apache-2.0
// Says where engine time ends: 106 days of picoseconds are what an int64 holds.
#include "sim/base/units/ticks.h"

#include <cmath>

#include "sim/base/errors/check.h"

namespace orrery {

Ticks to_ticks(Seconds t) {
  constexpr double limit = 106.0 * seconds_per_day;
  if (!(t.si() >= 0 && t.si() <= limit))
    throw Error({.found = "a simulated time of " + to_text(t),
                 .expected = "0 to 106 days (64-bit picoseconds)"});
  return {std::llround(t.si() * 1e12)};
}

void ticks_overflow() {
  throw Error({.found = "a simulated time beyond 106 days",
               .expected = "0 to 106 days (64-bit picoseconds)"});
}

}  // namespace orrery
