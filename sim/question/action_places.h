// SPDX-License-Identifier: Apache-2.0
// Knows where a user's own file has the settings that an action changes.
#pragma once

#include <vector>

#include "sim/diagnose/diagnose.h"
#include "sim/launch/read/given_run.h"

namespace orrery {

// Adds to each action the lines of the configuration whose settings its sentence names in the
// words of the program.
void add_places(std::vector<Action>& actions, const GivenRun& run);

}  // namespace orrery
