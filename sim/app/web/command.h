// SPDX-License-Identifier: Apache-2.0
// Knows the command `web`.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command web_command();

}  // namespace orrery
