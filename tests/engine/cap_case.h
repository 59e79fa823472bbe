// SPDX-License-Identifier: Apache-2.0
// Makes curves of caps that several tests of power use.
#pragma once

#include "sim/engine/power/cap_curve.h"

namespace orrery {

// Of a device that draws its limit, beside 50 W of its host: at half of it steps take so many times
// as long.
inline CapCurve halved_curve(double watts, double slowest) {
  return cap_curve({{.watts = watts / 2, .drawn = watts / 2, .step = slowest},
                    {.watts = watts, .drawn = watts, .step = 1}},
                   50);
}

}  // namespace orrery
