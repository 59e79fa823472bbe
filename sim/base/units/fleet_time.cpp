// SPDX-License-Identifier: Apache-2.0
// Ends what runs for longer than a cluster's time reaches.
#include "sim/base/units/fleet_time.h"

#include "sim/base/errors/check.h"

namespace orrery {

void fleet_time_overflow() {
  throw Error({.file = "schedule",
               .found = "jobs that end after 292,000 years",
               .expected = "lengths that sum to less"});
}

}  // namespace orrery
