// SPDX-License-Identifier: Apache-2.0
// Asks each in turn.
#include "sim/engine/losses/fleet_losses.h"

#include <algorithm>

namespace orrery {

FleetTime FleetLosses::next_return() const {
  return std::min(breakdowns_.next_repair(), incidents_.next());
}

FleetTime FleetLosses::next() const {
  return std::min(
      {next_return(), breakdowns_.next_breakdown(), own_stops_.next(), power_hours_.next()});
}

bool FleetLosses::happen_until(FleetTime now) {
  bool changed = breakdowns_.repair_until(now);
  changed = breakdowns_.break_until(now) || changed;
  changed = incidents_.happen_until(now) || changed;
  changed = own_stops_.stop_until(now) || changed;
  return power_hours_.change_until(now) || changed;
}

void FleetLosses::take(FleetTime now, FleetRecord& record) {
  record.power.suspended = power_hours_.suspended() + incidents_.suspended();
  record.breakdowns = breakdowns_.counts();
  record.lemons = breakdowns_.lemons();
  record.incidents = incidents_.take_counts(now);
}

}  // namespace orrery
