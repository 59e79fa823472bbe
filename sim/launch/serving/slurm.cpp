// SPDX-License-Identifier: Apache-2.0
// Writes the job of Slurm that starts all engines of a deployment.
#include <algorithm>

#include <fmt/format.h>

#include "sim/base/text/words.h"
#include "sim/launch/serving/script.h"
#include "sim/launch/serving/script_parts.h"

namespace orrery {
namespace {

bool by_mpi(const ScriptEngine& e) { return e.engine->policy.scheduler == SchedulerKind::trtllm; }

constexpr const char* launch =
    R"(# launch KIND FIRST HOSTS GPUS SLOT: an engine on HOSTS hosts, of each of which it has GPUS.
launch() {{
  local kind=$1 first=$2 hosts=$3 gpus=$4 slot=$5 names
  names=$(IFS=, && echo "${{HOSTS[*]:first:hosts}}")
  # A step is given all GPUs of its hosts by Slurm, and its own in CUDA_VISIBLE_DEVICES.
  DEVICES=$(seq -s, $((slot * gpus)) $((slot * gpus + gpus - 1)))
  export DEVICES HEAD=${{HOSTS[first]}}
  PORT=$((PORT + slot)) srun --overlap --nodes="$hosts" --nodelist="$names" \
    --ntasks-per-node={} --gpus-per-node={} --cpu-bind=none{} \
    --output="$SLURM_JOB_NAME-$SLURM_JOB_ID-$kind-$first-$slot-%n.log" \
    "${{CONTAINER[@]}}" \
    bash -c "export CUDA_VISIBLE_DEVICES=\$DEVICES NODE_RANK=\$SLURM_PROCID && start_$kind" &
}}
)";

std::string launches(const ScriptEngine& e, std::int64_t first) {
  const std::string role(to_text(e.engine->role));
  const std::string fronts = e.engine->role == EngineRole::whole     ? "FRONTS"
                             : e.engine->role == EngineRole::prefill ? "PREFILL_FRONTS"
                                                                     : "DECODE_FRONTS";
  std::string host = e.hosts.hosts > 1     ? fmt::format("{} * i", e.hosts.hosts)
                     : e.hosts.engines > 1 ? fmt::format("i / {}", e.hosts.engines)
                                           : "i";
  if (first > 0) host = fmt::format("{} + {}", first, host);
  const std::string slot = e.hosts.engines > 1 ? fmt::format("i % {}", e.hosts.engines) : "";
  return fmt::format(
      "{0}=\nfor ((i = 0; i < {1}; i++)); do\n  launch {2} $(({3})) {4} {5} {6}\n"
      "  {0}+=\"${{HOSTS[{3}]}}:{7} \"\ndone\n",
      fronts, e.engine->replicas, role, host, e.hosts.hosts, e.hosts.gpus,
      slot.empty() ? "0" : fmt::format("$(({}))", slot),
      slot.empty() ? "$PORT" : fmt::format("$((PORT + {}))", slot));
}

}  // namespace

std::string slurm_script(const ServedDeployment& d, const std::string& flag) {
  const std::vector<ScriptEngine> engines = script_engines(d);
  std::vector<std::string> notes = script_notes(d, engines), functions;
  notes.emplace_back(
      "Add your account, partition and time. CONTAINER holds srun's words for a container, such as "
      "--container-image of Pyxis; engines then find no files of the host but what it mounts.");
  const EngineProgram program = engine_program(d, EngineDialect::own);
  std::int64_t hosts = 0;
  std::string starts;
  for (const ScriptEngine& e : engines) {
    starts += launches(e, hosts);
    hosts += hosts_of_all(e.hosts, e.engine->replicas);
    functions.push_back(fmt::format("start_{}", to_text(e.engine->role)));
  }
  const bool mpi = by_mpi(engines.front());
  std::string out = "#!/usr/bin/env bash\n";
  out += fmt::format(
      "#SBATCH --job-name={}\n#SBATCH --nodes={}\n#SBATCH --gpus-per-node={}\n"
      "#SBATCH --exclusive\n#SBATCH --mem=0\n#SBATCH --output=%x-%j.log\n",
      deployment_name(d), hosts, d.gpus_per_host);
  out += as_comment(notes) + "set -euo pipefail\n" + script_variables(d);
  out +=
      fmt::format("# An image with the engine: {}\nread -r -a CONTAINER <<<\"${{CONTAINER:-}}\"\n",
                  program.image);
  out += "mapfile -t HOSTS < <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n\n";
  for (const ScriptEngine& e : engines) {
    const std::vector<std::string> launcher =
        mpi ? std::vector<std::string>{"trtllm-llmapi-launch"} : std::vector<std::string>{};
    out += start_function(d, e, launcher, flag) + "\n";
  }
  const std::string router = router_function(d);
  if (!router.empty()) {
    out += router + "\n";
    functions.emplace_back("start_router");
  }
  out +=
      fmt::format("export MODEL PORT{}{}\nexport -f {}\n\n", needs_draft(d) ? " DRAFT_MODEL" : "",
                  router.empty() ? "" : " ROUTER_PORT", joined(functions, " "));
  // Tasks of a step: a process a host, of MPI one for each GPU.
  out += fmt::format(fmt::runtime(launch), mpi ? "\"$gpus\"" : "1", d.gpus_per_host,
                     mpi ? " --mpi=pmix" : "") +
         "\n" + starts;
  if (!router.empty()) {
    const char* const fronts = d.apart() ? "PREFILL_FRONTS DECODE_FRONTS" : "FRONTS";
    out += fmt::format("export {}\n", fronts);
    out +=
        "srun --overlap --nodes=1 --ntasks=1 --nodelist=\"${HOSTS[0]}\" \\\n"
        "  \"${CONTAINER[@]}\" bash -c start_router &\n"
        "echo \"http://${HOSTS[0]}:$ROUTER_PORT\"\n";
  } else {
    const char* const fronts = d.apart() ? "$PREFILL_FRONTS$DECODE_FRONTS" : "$FRONTS";
    out += fmt::format("echo \"engines listen on {}\"\n", fronts);
  }
  return out + "# The first that ends ends the job.\nwait -n\n";
}

}  // namespace orrery
