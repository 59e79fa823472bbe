// SPDX-License-Identifier: Apache-2.0
// Knows how other programs run the shards of a question: job arrays of Slurm, jobs of Kubernetes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/app/line/command.h"
#include "sim/app/shards/shared_work.h"

namespace orrery {

std::vector<Flag> job_flags();

// Whether the line asks for files that run shards. Error for one without --shards, and for --shards
// without them.
bool asks_for_jobs(const Given& given);

// Writes them, and the folder that holds the question; says on stdout how they are started. `share`
// asks for the points without doing any, so that a question that is no good is refused here.
ExitCode write_jobs(const Given& given, const SharedRun& run, const std::string& lines,
                    const std::function<ExitCode(SharedWork&)>& share);

}  // namespace orrery
