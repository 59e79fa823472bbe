// SPDX-License-Identifier: Apache-2.0
// Knows what scripts by hand and scripts of Slurm share: a function for each kind of engine.
#pragma once

#include <string>
#include <vector>

#include "sim/launch/serving/hosts.h"
#include "sim/launch/serving/program.h"

namespace orrery {

// A kind of engine as scripts see it.
struct ScriptEngine {
  const ServedEngine* engine = nullptr;
  EngineCommand command;
  EngineHosts hosts;
};
std::vector<ScriptEngine> script_engines(const ServedDeployment& deployment);
std::vector<std::string> script_notes(const ServedDeployment& deployment,
                                      const std::vector<ScriptEngine>& engines);

bool needs_draft(const ServedDeployment& deployment);

// MODEL, PORT and what else the functions read, with defaults that the environment may override.
std::string script_variables(const ServedDeployment& deployment);

// "start_decode() {..}": runs an engine's process on this host, in place of the shell. `launcher`:
// words before the program's own.
std::string start_function(const ServedDeployment& deployment, const ScriptEngine& engine,
                           const std::vector<std::string>& launcher, const std::string& flag);

// "start_router() {..}" over the addresses in FRONTS, or PREFILL_FRONTS and DECODE_FRONTS; empty:
// the engine's project has none for such a deployment.
std::string router_function(const ServedDeployment& deployment);
// Why not, and what to do; empty: none is needed.
std::string no_router_note(const ServedDeployment& deployment);

}  // namespace orrery
