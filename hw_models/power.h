// Knows when a device throttles: a mix of kernels cannot run faster than its power limit allows.
#pragma once

#include "hw_models/device.h"

namespace orrery {

// Time of a long run of work that takes `burst` at full clocks and `energy` above idle: at least
// the energy over the limit less idle power, so it is monotone in both.
Seconds sustained_time(Seconds burst, Joules energy, const ResolvedDevice& device);

// Mean board power over `elapsed` in which `energy` was spent above idle; never above the limit.
Watts mean_power(Joules energy, Seconds elapsed, const ResolvedDevice& device);

}  // namespace orrery
