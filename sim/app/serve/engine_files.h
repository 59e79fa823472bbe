// SPDX-License-Identifier: Apache-2.0
// Knows the flags that write how a predicted deployment is started: --commands, --slurm,
// --kubernetes.
#pragma once

#include <vector>

#include "sim/app/line/command.h"
#include "sim/base/json/json.h"
#include "sim/question/serve/serve.h"

namespace orrery {

std::vector<Flag> engine_file_flags();

// Before work begins. Error: a place that cannot be written, a form that there is none of, several
// points of which none will be chosen.
void check_engine_files(const JsonValue& settings, const Given& given);

// Writes what was asked for, of the one point or the chosen one; nothing, and says so, where there
// is none. Error: a form that cannot hold the deployment.
void write_engine_files(const Served& served, const Given& given, bool quiet);

}  // namespace orrery
