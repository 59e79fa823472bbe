// SPDX-License-Identifier: Apache-2.0
// The command `schedule`: a list of jobs on one cluster, by each of several policies.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command schedule_command();

}  // namespace orrery
