// SPDX-License-Identifier: Apache-2.0
// Knows the parts that scripts for Slurm and for Kubernetes share: their head, what they check, how
// a host starts its ranks.
#pragma once

#include <string>
#include <vector>

#include "sim/launch/script/program.h"
#include "sim/launch/script/script.h"

namespace orrery {

// All that is made into text.
struct ScriptSubject {
  const Scenario& scenario;
  const LaunchFlags& flags;
  const ScriptNote& note;
  HostPlan plan;
  LaunchProgram program;
  std::string name;  // of the job: lower case letters, digits and dashes, at most 40
};
ScriptSubject script_subject(const Scenario& scenario, const LaunchFlags& flags,
                             const ScriptNote& note);

// Lines of a comment of at most 100 columns. An item begins with "- ".
std::string comment(const std::string& text);
// Who made it, for what, what is predicted, and what is left to do. `start` says how to start it.
std::string script_head(const ScriptSubject& subject, const std::vector<std::string>& start);

// Fails with a sentence where a value is missing; for data only without MOCK_DATA.
std::string checks(const LaunchProgram& program);
// Exports what the layout's flags name.
std::string environment(const LaunchFlags& flags);
// Starts the ranks of one host: what is started stands in "$@", the host's number in the variable
// `host`, the meeting place in MASTER_ADDR and MASTER_PORT.
std::string start_ranks(const ScriptSubject& subject, const std::string& host,
                        const std::string& id);

}  // namespace orrery
