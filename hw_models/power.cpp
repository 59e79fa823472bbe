// Knows when a device throttles: a mix of kernels cannot run faster than its power limit allows.
#include "hw_models/power.h"

#include <algorithm>

namespace orrery {

Seconds sustained_time(Seconds burst, Joules energy, const ResolvedDevice& device) {
  const double budget = device.power_limit.si() - device.idle_power.si();
  if (budget <= 0) return burst;  // no published limit: nothing to throttle by
  return Seconds(std::max(burst.si(), energy.si() / budget));
}

Watts mean_power(Joules energy, Seconds elapsed, const ResolvedDevice& device) {
  if (elapsed.si() <= 0) return device.idle_power;
  const double power = device.idle_power.si() + energy.si() / elapsed.si();
  if (device.power_limit.si() <= 0) return Watts(power);
  return Watts(std::min(power, device.power_limit.si()));
}

}  // namespace orrery
