// SPDX-License-Identifier: Apache-2.0
// Knows whole launch scripts of a layout: for Slurm a file for sbatch, for Kubernetes a manifest.
#pragma once

#include <string>

#include "sim/engine/scenario.h"
#include "sim/launch/flags.h"

namespace orrery {

// Said in a script's head beside the scenario.
struct ScriptNote {
  std::string made_by;           // "orrery 0.6.0"
  Seconds step_time, low, high;  // predicted, with its 90% range
  double tokens_per_second_per_gpu = 0;
};

// Why neither can be made, in words that follow "found"; empty: they can. The layout fits and
// trains.
std::string no_slurm_reason(const Scenario& scenario);
std::string no_kubernetes_reason(const Scenario& scenario);

// One file, which sbatch takes as it is. What only its user knows (data, rates, folders) are
// variables that it checks before it starts anything. `flags` are those of the scenario.
std::string slurm_script(const Scenario& scenario, const LaunchFlags& flags,
                         const ScriptNote& note);

// An indexed Job (batch/v1), a headless Service where its pods meet, and a ConfigMap with what they
// run: no operator is needed.
std::string kubernetes_manifest(const Scenario& scenario, const LaunchFlags& flags,
                                const ScriptNote& note);

}  // namespace orrery
