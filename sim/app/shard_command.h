// SPDX-License-Identifier: Apache-2.0
// Knows the command that does one shard of the question that a folder of results holds.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command shard_command();

}  // namespace orrery
