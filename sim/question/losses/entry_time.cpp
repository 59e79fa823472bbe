// SPDX-License-Identifier: Apache-2.0
// Holds times to what a cluster's clock can tell.
#include "sim/question/losses/entry_time.h"

namespace orrery {

FleetTime read_fleet_time(const JsonValue& at, Seconds least, const char* expected) {
  const Seconds time = at.quantity<Seconds>();
  if (!(time >= least) || time > to_seconds(most_fleet_time)) at.fail(expected);
  return to_fleet_time(time);
}

FleetTime read_entry_time(const JsonValue& at) {
  return read_fleet_time(at, Seconds{}, "a time from 0 to 1,000 years, such as \"2 day\"");
}

}  // namespace orrery
