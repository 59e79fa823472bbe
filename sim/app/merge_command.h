// SPDX-License-Identifier: Apache-2.0
// Knows the command that makes one answer of what many processes found.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command merge_command();

}  // namespace orrery
