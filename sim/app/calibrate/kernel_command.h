// SPDX-License-Identifier: Apache-2.0
// Knows `calibrate kernel`: candidates built, checked, timed, and what a job gains from the best.
#pragma once

#include <string>
#include <vector>

#include "sim/app/line/command.h"

namespace orrery {

// Flags that no other action of calibrate has.
std::vector<Flag> kernel_flags();

// Builds, judges and projects. The exit code is 0 where a candidate is right, 1 where none is, 3
// where none compiles, or there is no GPU to run it on.
Printed kernel_command(const Given& given);

}  // namespace orrery
