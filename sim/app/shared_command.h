// SPDX-License-Identifier: Apache-2.0
// Knows which command answers the question that a folder of results holds.
#pragma once

#include <string>

#include "sim/app/line/command.h"
#include "sim/app/shards/shared_run.h"

namespace orrery {

// Error at the folder's file where it names no command that takes --results.
Command shared_command(const SharedRun& run, const std::string& folder);

}  // namespace orrery
