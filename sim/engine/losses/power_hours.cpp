// SPDX-License-Identifier: Apache-2.0
// Walks from hour to hour with another limit.
#include "sim/engine/losses/power_hours.h"

#include <algorithm>

namespace orrery {

PowerHours::PowerHours(FleetState& state, const FleetQuestion& question)
    : state_(state), limits_(question.hours.limits), suspend_(state) {
  find_next();
}

void PowerHours::find_next() {
  next_ = hour_ + 1;
  while (next_ < limits_.size() && limits_[next_] == limits_[hour_]) ++next_;
  next_ = std::min(next_, limits_.size());
}

FleetTime PowerHours::next() const {
  if (next_ >= limits_.size()) return fleet_never;
  return {static_cast<std::int64_t>(next_) * fleet_hour.us};
}

bool PowerHours::change_until(FleetTime now) {
  bool changed = false;
  for (; next() <= now; find_next()) {
    hour_ = next_;
    changed = true;
  }
  if (!changed) return false;
  state_.power().set_limit(limits_[hour_]);
  suspend_.free(
      state_.milliwatts() - limits_[hour_], now,
      [&](std::uint32_t job) { return state_.extra_milliwatts(job); }, "power");
  return true;
}

}  // namespace orrery
