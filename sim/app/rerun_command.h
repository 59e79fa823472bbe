// SPDX-License-Identifier: Apache-2.0
// Knows the command `rerun`: an answer repeats itself from the question that it carries.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command rerun_command();

}  // namespace orrery
