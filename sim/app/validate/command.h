// SPDX-License-Identifier: Apache-2.0
// Knows the command `validate` as a line of flags.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command validate_command();

}  // namespace orrery
