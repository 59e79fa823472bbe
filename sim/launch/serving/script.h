// SPDX-License-Identifier: Apache-2.0
// Knows the shell scripts that start a deployment's engines: by hand, or under Slurm.
#pragma once

#include <string>

#include "sim/launch/serving/engine.h"

namespace orrery {

// A word of a shell: variables ($NAME, $((..))) are expanded, nothing else is.
std::string expanded_word(const std::string& text);

// A bash script that starts one engine, or the router before them: its argument says which. Error
// at `flag` where an engine cannot be started so.
std::string commands_script(const ServedDeployment& deployment, const std::string& flag);

// A job for sbatch that starts all engines on hosts of its own, and the router where the engine's
// project has one. Error as above.
std::string slurm_script(const ServedDeployment& deployment, const std::string& flag);

}  // namespace orrery
