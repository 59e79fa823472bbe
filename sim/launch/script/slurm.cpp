// SPDX-License-Identifier: Apache-2.0
// Writes a script for sbatch.
#include <fmt/format.h>

#include "sim/launch/script/script_parts.h"

namespace orrery {
namespace {

std::string directives(const ScriptSubject& s) {
  return fmt::format(R"(#SBATCH --job-name={}
#SBATCH --nodes={}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={}
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --output=%x-%j.out
)",
                     s.name, s.plan.hosts, s.plan.accelerators);
}

// Nodes are counted again: sbatch takes other numbers than those above from its command line.
std::string meeting_place(const ScriptSubject& s) {
  return fmt::format(R"(if [ -z "${{SLURM_JOB_ID:-}}" ]; then  # no job yet
  exec sbatch "$0" "$@"
fi
if [ "$SLURM_JOB_NUM_NODES" -ne {} ]; then
  echo "this layout takes {} nodes, the job has $SLURM_JOB_NUM_NODES" >&2
  exit 2
fi

# Where the ranks meet: the first node, at a port of this job's own.
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
MASTER_ADDR=${{nodes%%$'\n'*}}
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
export MASTER_ADDR MASTER_PORT
)",
                     s.plan.hosts, s.plan.hosts);
}

std::string files(const ScriptSubject& s) {
  std::string out = "\nRUN_DIR=${RUN_DIR:-$PWD}  # a folder that all nodes share\n";
  const bool named = (s.program.train + s.program.file).find("RUN_NAME") != std::string::npos;
  if (named) out += fmt::format("RUN_NAME={}-$SLURM_JOB_ID\n", s.name);
  out += "mkdir -p \"$RUN_DIR\"\n";
  if (s.program.file_name.empty()) return out;
  out += fmt::format("LAYOUT_FILE=$RUN_DIR/{}-$SLURM_JOB_ID-{}\n", s.name, s.program.file_name);
  out += "cat >\"$LAYOUT_FILE\" <<'LAYOUT'\n" + s.program.file;
  if (!s.program.file.ends_with('\n')) out += "\n";
  return out + "LAYOUT\n";
}

std::string run(const ScriptSubject& s) {
  const std::string start = start_ranks(s, "SLURM_NODEID", "\"$SLURM_JOB_ID\"");
  return fmt::format(R"(
container=()  # with pyxis: CONTAINER_IMAGE, and CONTAINER_MOUNTS beside RUN_DIR (FROM:TO,FROM:TO)
if [ -n "${{CONTAINER_IMAGE:-}}" ]; then
  container=("--container-image=$CONTAINER_IMAGE")
  container+=("--container-mounts=$RUN_DIR:$RUN_DIR${{CONTAINER_MOUNTS:+,$CONTAINER_MOUNTS}}")
fi

# shellcheck disable=SC2016  # each node expands it
start='{}'
srun --nodes={} --ntasks={} --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1 \
  "${{container[@]}}" bash -c "$start" start "${{train[@]}}"
)",
                     start, s.plan.hosts, s.plan.hosts);
}

}  // namespace

std::string no_slurm_reason(const Scenario& scenario) {
  const std::string program = no_script_reason(scenario.stack, scenario.job);
  if (!program.empty()) return program;
  const Device& device = scenario.cluster.device;
  if (device.software && device.software->scheduled_as &&
      !device.software->scheduled_as->slurm.empty())
    return "";
  return fmt::format("{}, which the catalogue knows no generic resource of Slurm for",
                     device.title);
}

std::string slurm_script(const Scenario& scenario, const LaunchFlags& flags,
                         const ScriptNote& note) {
  const ScriptSubject s = script_subject(scenario, flags, note);
  const bool blocks = s.plan.hosts_per_domain > 1 && s.plan.hosts > s.plan.hosts_per_domain;
  std::vector<std::string> start = {
      "Start: sbatch FILE, with the values below in the environment or written in here. `bash "
      "FILE` "
      "checks them first, then submits it. Partition, account and time are options of sbatch; "
      "further words, behind FILE, go to the program."};
  if (blocks)
    start.push_back(fmt::format("Where Slurm knows the domains (topology/block), add --segment={}.",
                                s.plan.hosts_per_domain));
  return "#!/bin/bash\n" + script_head(s, start) + directives(s) +
         "set -euo pipefail\n\n# Values that only you know: in the environment, or as lines above "
         "these.\n" +
         checks(s.program) + meeting_place(s) + files(s) + "\n" + environment(flags) +
         s.program.train + run(s);
}

}  // namespace orrery
