// SPDX-License-Identifier: Apache-2.0
// Says how boards of one kind differ from each other, and what a slower clock does to one.
#pragma once

#include <cstdint>

#include "hw_models/device.h"

namespace orrery {

// Every rate that follows the clock, times `factor`, and so what the power limit leaves for work: a
// board that is slower at full clocks is as much slower at its limit.
void scale_clock(ResolvedDevice& device, double factor);

// Expected speed of the slowest of `boards` healthy boards over the mean board's. Boards of one
// kind differ (voltage that a chip needs, leakage, cooling), a calibration is that of a typical
// one, and a synchronous step waits for the slowest: within a microbatch its tensor-parallel group,
// its stage within a few, all others at the gradients. `spread` is the standard deviation of their
// speeds, as a share. Expected extreme of normal variables; 1 for one board or without a spread.
double slowest_board(double spread, std::int64_t boards);

}  // namespace orrery
