// SPDX-License-Identifier: Apache-2.0
// Knows when a device throttles: a mix of kernels cannot run faster than its power limit allows.
#pragma once

#include <functional>
#include <vector>

#include "hw_models/device.h"

namespace orrery {

// Tensor work of a pass: its time at full clocks, and its energy (a part of the pass') at the clock
// at which it would run alone at the power limit. That is what calibrations hold: sustained
// products are measured there.
struct ClockedWork {
  Seconds time;
  Joules energy;
  bool hides = false;  // traffic runs beside it
};

// Time and energy of a pass under the power limit.
struct SustainedPass {
  Seconds time;
  Joules energy;     // above idle
  Seconds hiding;    // what the limit adds to work that hides traffic
  double clock = 1;  // of the processors, over the full one
};

// Time of a long run of work that takes `burst` at full clocks and `energy` above idle: at least
// the energy over the limit less idle power, so it is monotone in both.
Seconds sustained_time(Seconds burst, Joules energy, const ResolvedDevice& device);

// The same of a mix, in which cooler work leaves power for `clocked` to run faster than alone. Of
// that each operation then costs more: energy goes with the square of the clock, time less than
// with its inverse (power.cpp). `stream` is the time of the pass' kernels at full clocks, `paced`
// what of it goes with the inverse of the clock, `joined` what the pass takes when its kernels take
// so long and those that hide traffic so much longer than at full clocks: never less for more.
// Without clocked work it is the one above. Monotone in every energy, and where nothing is paced in
// every time.
SustainedPass sustained_pass(
    Seconds stream, Seconds paced, Joules energy, const std::vector<ClockedWork>& clocked,
    const ResolvedDevice& device,
    const std::function<Seconds(Seconds stream, Seconds hiding)>& joined =
        [](Seconds stream, Seconds) { return stream; });

// Energy of tensor work at the clock that another limit sustains, over that at the limit which a
// calibration holds. `budget` is the ratio of what the two limits leave above idle: less power
// lowers the clock, and energy of an operation falls with its square. It stops falling at half the
// budget: nothing was measured at lower voltages.
double sustained_energy(double budget);

// What tensor work at such a share of a clock takes above idle, over what it takes at the clock
// itself, and the share at which that is half: no lower one was measured.
double budget_of_clock(double clock);
double least_measured_clock();

// Mean board power over `elapsed` in which `energy` was spent above idle; never above the limit.
Watts mean_power(Joules energy, Seconds elapsed, const ResolvedDevice& device);

}  // namespace orrery
