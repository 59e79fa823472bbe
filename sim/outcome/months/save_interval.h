// SPDX-License-Identifier: Apache-2.0
// Knows which intervals between saves an operator sets: programs count steps, people count in round
// numbers.
#pragma once

#include <vector>

namespace orrery {

// Seconds of the nearest whole number of steps, one at least, no shorter than `least`.
double whole_steps(double step, double least, double wanted);

// Seconds of the two round numbers of steps below `wanted` and of the two above it, those that are
// no shorter than `least`, in order; never empty. Round are 1, 2, 5, 10, 20, 25, 50, 100, 200, 250,
// 500, ...
std::vector<double> round_steps(double step, double least, double wanted);

}  // namespace orrery
