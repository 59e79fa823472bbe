// SPDX-License-Identifier: Apache-2.0
// Knows how one job is advised on several clusters: which machine does it best, and which cannot.
#pragma once

#include <string>
#include <vector>

#include "sim/app/answer/answer.h"
#include "sim/app/ask/answers.h"
#include "sim/app/line/command.h"
#include "sim/base/json/json.h"

namespace orrery {

// Clusters that "cluster" of the settings names: "all", several with commas or in a list; empty
// where it names one alone.
std::vector<std::string> several_clusters(const JsonValue& settings);

// Advises on each cluster by itself, prints them in the order of the objective, least first, and
// why the others are left out. Exit code 3 where the job runs on none.
ExitCode advise_machines(const JsonValue& settings, const CommonFlags& common);
// The same for machines.
MachineAnswer machines_for_machines(const JsonValue& settings, const AskedWith& with);

}  // namespace orrery
