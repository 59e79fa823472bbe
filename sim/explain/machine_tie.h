// SPDX-License-Identifier: Apache-2.0
// Says when two accelerators are too much alike for predictions to tell which is faster.
#pragma once

#include <string>

#include "hw_models/device.h"

namespace orrery {

// `ratio`: speed of an accelerator `b` over that of an `a`, doing the same. A sentence where that
// is closer to 1 than single boards of the two kinds are to each other nine times of ten, since
// calibrations are of few boards; empty where it is not, and for one kind.
std::string machine_tie(const Device& a, const Device& b, double ratio);

}  // namespace orrery
