// SPDX-License-Identifier: Apache-2.0
// Knows the command `advise`: the best layouts of a training job.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command advise_command();

}  // namespace orrery
