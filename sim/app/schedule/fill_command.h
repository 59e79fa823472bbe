// SPDX-License-Identifier: Apache-2.0
// The command `fill`: how much of a cluster of shared accelerators can be handed out.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command fill_command();

}  // namespace orrery
