// SPDX-License-Identifier: Apache-2.0
// Knows the command `replay`: execution traces of other programs, run on a cluster.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command replay_command();

}  // namespace orrery
