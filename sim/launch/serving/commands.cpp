// SPDX-License-Identifier: Apache-2.0
// Writes the script that starts engines by hand.
#include <fmt/format.h>

#include "sim/base/text/words.h"
#include "sim/launch/serving/script.h"
#include "sim/launch/serving/script_parts.h"

namespace orrery {
namespace {

// Ranks of TensorRT-LLM are processes of MPI from more than a host on.
std::vector<std::string> launcher_of(const ScriptEngine& e) {
  if (e.engine->policy.scheduler != SchedulerKind::trtllm || e.hosts.hosts == 1) return {};
  return {"mpirun",
          "-n",
          std::to_string(e.hosts.hosts * e.hosts.gpus),
          "--hostfile",
          "$HOSTFILE",
          "--map-by",
          fmt::format("ppr:{}:node", e.hosts.gpus),
          "trtllm-llmapi-launch"};
}

// How often, and where, the script is called for a kind of engine.
std::string usage(const ScriptEngine& e) {
  const std::string role(to_text(e.engine->role));
  const std::string engines = plural(e.engine->replicas, "engine");
  if (e.hosts.hosts > 1 && e.engine->policy.scheduler == SchedulerKind::trtllm)
    return fmt::format(
        "{}: {}, each on {} hosts with {} GPUs: once for each, where HOSTFILE "
        "names its hosts.",
        role, engines, e.hosts.hosts, e.hosts.gpus);
  if (e.hosts.hosts > 1)
    return fmt::format(
        "{}: {}, each on {} hosts with {} GPUs: on every host of one, with HEAD "
        "(the first host's name) and NODE_RANK (0 to {}).",
        role, engines, e.hosts.hosts, e.hosts.gpus, e.hosts.hosts - 1);
  if (e.hosts.engines > 1)
    return fmt::format(
        "{}: {}, up to {} on a host: once for each, with {} in CUDA_VISIBLE_DEVICES "
        "and a PORT of its own.",
        role, engines, e.hosts.engines, e.hosts.gpus == 1 ? "a GPU" : plural(e.hosts.gpus, "GPU"));
  return fmt::format("{}: {}, one on each host.", role, engines);
}

// "a, b or c".
std::string any_of_words(std::vector<std::string> words) {
  const std::string last = words.back();
  words.pop_back();
  return joined(words, ", ") + " or " + last;
}

}  // namespace

std::string commands_script(const ServedDeployment& d, const std::string& flag) {
  const std::vector<ScriptEngine> engines = script_engines(d);
  std::vector<std::string> notes = script_notes(d, engines), roles;
  for (const ScriptEngine& e : engines) notes.push_back("Call it with " + usage(e));
  const std::string router = router_function(d);
  if (!router.empty())
    notes.push_back(
        d.apart() ? "Call it with router: once, on PREFILL_FRONTS and DECODE_FRONTS (host:port of "
                    "each engine's first host, with blanks between them)."
                  : "Call it with router: once, on FRONTS (host:port of each engine's first host, "
                    "with blanks between them).");
  std::string out = "#!/usr/bin/env bash\n" + as_comment(notes);
  out += "set -euo pipefail\n" + script_variables(d) + "\n";
  std::string cases;
  for (const ScriptEngine& e : engines) {
    out += start_function(d, e, launcher_of(e), flag) + "\n";
    const std::string role(to_text(e.engine->role));
    roles.push_back(role);
    const bool ranked = e.hosts.hosts > 1 && e.engine->policy.scheduler != SchedulerKind::trtllm;
    cases += fmt::format("  {})\n", role);
    if (ranked)
      cases += "    : \"${HEAD:?the first host}\" \"${NODE_RANK:?0 on the first host}\"\n";
    if (e.hosts.hosts > 1 && !ranked) cases += "    : \"${HOSTFILE:?hosts of the engine}\"\n";
    cases += fmt::format("    start_{}\n    ;;\n", role);
  }
  if (!router.empty()) {
    out += router + "\n";
    roles.emplace_back("router");
    cases += "  router)\n    start_router\n    ;;\n";
  }
  const bool one = roles.size() == 1;
  out += fmt::format("case \"${{1:-{}}}\" in\n", one ? roles.front() : "");
  out += cases;
  out += fmt::format(
      "  *)\n    echo \"expected {}, found '${{1:-}}'\" >&2\n    exit 2\n    ;;\nesac\n",
      one ? roles.front() : any_of_words(roles));
  return out;
}

}  // namespace orrery
