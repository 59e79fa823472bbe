// SPDX-License-Identifier: Apache-2.0
// Writes functions of scripts that start serving engines.
#include "sim/launch/serving/script_parts.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "sim/base/text/shell.h"
#include "sim/launch/serving/script.h"
#include "sim/launch/serving/yaml.h"

namespace orrery {
namespace {

// The words of one command over several lines: a flag with its values a line.
std::string continued(const std::vector<std::string>& words, std::size_t plain) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool flag = i >= plain && (words[i].starts_with("--") || words[i].starts_with("\"${"));
    if (i > 0) out += flag ? " \\\n    " : " ";
    out += words[i].starts_with("\"${") ? words[i] : expanded_word(words[i]);
  }
  return out;
}

// What SGLang's router calls a policy; empty: it has none such.
std::string router_policy(RouterKind kind) {
  switch (kind) {
    case RouterKind::random:
      return "random";
    case RouterKind::round_robin:
      return "round_robin";
    case RouterKind::power_of_two:
      return "power_of_two";
    case RouterKind::prefix:
      return "cache_aware";
    default:
      return "";
  }
}

// The engine's own router, or none.
enum class OwnRouter : std::uint8_t { none, sglang, trtllm };
OwnRouter own_router(const ServedDeployment& d) {
  if (d.kind() == SchedulerKind::sglang && (d.apart() || d.engines.front().replicas > 1))
    return OwnRouter::sglang;
  if (d.kind() == SchedulerKind::trtllm && d.apart()) return OwnRouter::trtllm;
  return OwnRouter::none;
}

constexpr const char* sglang_router = R"(  exec python3 -m sglang_router.launch_router \
    --host 0.0.0.0 \
    --port "$ROUTER_PORT" \
    --policy {} \
    --worker-startup-timeout-secs 3600 \
    {}
}}
)";

constexpr const char* sglang_apart = R"(start_router() {
  local engines words=() front
  read -r -a engines <<<"$PREFILL_FRONTS"
  for front in "${engines[@]}"; do words+=(--prefill "http://$front" $((${front##*:} + 998))); done
  read -r -a engines <<<"$DECODE_FRONTS"
  for front in "${engines[@]}"; do words+=(--decode "http://$front"); done
)";

constexpr const char* sglang_whole = R"(start_router() {
  local engines words=() front
  read -r -a engines <<<"$FRONTS"
  for front in "${engines[@]}"; do words+=("http://$front"); done
)";

constexpr const char* trtllm_router = R"(start_router() {
  local engines front file
  file=$(mktemp)
  {
    printf 'hostname: 0.0.0.0\nport: %s\nbackend: pytorch\n' "$ROUTER_PORT"
    read -r -a engines <<<"$PREFILL_FRONTS"
    printf 'context_servers:\n  num_instances: %s\n  urls:\n' "${#engines[@]}"
    for front in "${engines[@]}"; do printf '    - "%s"\n' "$front"; done
    read -r -a engines <<<"$DECODE_FRONTS"
    printf 'generation_servers:\n  num_instances: %s\n  urls:\n' "${#engines[@]}"
    for front in "${engines[@]}"; do printf '    - "%s"\n' "$front"; done
  } >"$file"
  exec trtllm-serve disaggregated --config_file "$file" --server_start_timeout 3600
}
)";

}  // namespace

std::string expanded_word(const std::string& text) {
  if (text.find('$') == text.npos) return shell_word(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '`') out += '\\';
    out += c;
  }
  return out + '"';
}

std::vector<ScriptEngine> script_engines(const ServedDeployment& d) {
  std::vector<ScriptEngine> all;
  for (const ServedEngine& e : d.engines)
    all.push_back({.engine = &e, .command = engine_command(d, e), .hosts = engine_hosts(d, e)});
  return all;
}

bool needs_draft(const ServedDeployment& d) {
  return d.guessing &&
         (d.guessing->kind == DraftKind::eagle3 || d.guessing->kind == DraftKind::draft);
}

std::vector<std::string> script_notes(const ServedDeployment& d,
                                      const std::vector<ScriptEngine>& engines) {
  std::vector<EngineCommand> commands;
  for (const ScriptEngine& e : engines) commands.push_back(e.command);
  std::vector<std::string> notes = deployment_notes(d, commands);
  if (const std::string note = no_router_note(d); !note.empty()) notes.push_back(note);
  return notes;
}

std::string script_variables(const ServedDeployment& d) {
  std::string out = d.checkpoint.empty() ? "MODEL=${MODEL:?the name or folder of the checkpoint}\n"
                                         : fmt::format("MODEL=${{MODEL:-{}}}\n", d.checkpoint);
  if (needs_draft(d)) {
    const std::string& guesser = d.guessing->guesser;
    out += guesser.find('/') == guesser.npos
               ? "DRAFT_MODEL=${DRAFT_MODEL:?the checkpoint that guesses tokens}\n"
               : fmt::format("DRAFT_MODEL=${{DRAFT_MODEL:-{}}}\n", guesser);
  }
  out += fmt::format("PORT=${{PORT:-{}}}\n", engine_port);
  if (own_router(d) != OwnRouter::none) out += "ROUTER_PORT=${ROUTER_PORT:-8080}\n";
  return out;
}

namespace {

// What engines that share a host must not share: the port on which others fetch keys and values.
std::string own_ports(const ScriptEngine& e) {
  if (e.engine->role == EngineRole::whole || e.engine->policy.scheduler != SchedulerKind::vllm)
    return "";
  return "  VLLM_NIXL_SIDE_CHANNEL_HOST=$(hostname -i)\n"
         "  VLLM_NIXL_SIDE_CHANNEL_PORT=$((5600 + (PORT - 8000) * 64))\n"
         "  export VLLM_NIXL_SIDE_CHANNEL_HOST VLLM_NIXL_SIDE_CHANNEL_PORT\n";
}

}  // namespace

std::string start_function(const ServedDeployment& d, const ScriptEngine& e,
                           const std::vector<std::string>& launcher, const std::string& flag) {
  const EngineProgram program = engine_program(d, EngineDialect::own);
  std::string out = fmt::format("start_{}() {{\n", to_text(e.engine->role));
  if (!e.command.file.is_null())
    out += fmt::format(
        "  local file\n  file=$(mktemp --suffix=.yaml)\n  cat >\"$file\" <<YAML\n{}"
        "YAML\n",
        to_yaml(e.command.file));
  for (const LaunchFlag& variable : e.command.environment)
    out += fmt::format("  export {}={}\n", variable.name, expanded_word(variable.value));
  out += own_ports(e);
  const std::string waits = wait_flag(d, *e.engine, HostFront::first);
  if (!waits.empty())
    out += fmt::format(
        "  local wait_flags=()\n  if [[ $NODE_RANK -gt 0 ]]; then wait_flags=({}); "
        "fi\n",
        waits);
  std::vector<std::string> words = launcher;
  EngineCommand command = e.command;
  for (LaunchFlag& said : command.flags)
    if (said.name == "--disaggregation-bootstrap-port") said.value = "$((PORT + 998))";
  for (std::string& word : command_words(program, command, "$MODEL", "$file"))
    words.push_back(std::move(word));
  for (const char* word : {"--host", "0.0.0.0", "--port", "$PORT"}) words.emplace_back(word);
  for (std::string& word : host_flags(d, *e.engine, HostFront::first, flag))
    words.push_back(std::move(word));
  if (!waits.empty()) words.emplace_back("\"${wait_flags[@]}\"");
  const std::size_t plain =
      launcher.size() + program.start.size() + (program.model_flag.empty() ? 1 : 2);
  return out + "  exec " + continued(words, plain) + "\n}\n";
}

std::string router_function(const ServedDeployment& d) {
  switch (own_router(d)) {
    case OwnRouter::none:
      return "";
    case OwnRouter::trtllm:
      return trtllm_router;
    case OwnRouter::sglang:
      break;
  }
  const std::string policy = router_policy(d.router);
  const char* const words =
      d.apart() ? "--pd-disaggregation \"${words[@]}\"" : "--worker-urls \"${words[@]}\"";
  return (d.apart() ? sglang_apart : sglang_whole) +
         fmt::format(fmt::runtime(sglang_router), policy.empty() ? "round_robin" : policy, words);
}

std::string no_router_note(const ServedDeployment& d) {
  const std::string wanted(to_text(d.router));
  switch (own_router(d)) {
    case OwnRouter::sglang:
      return router_policy(d.router).empty()
                 ? fmt::format(
                       "Not said: SGLang's router has no policy like {}: round_robin stands "
                       "in its place.",
                       wanted)
                 : "";
    case OwnRouter::trtllm:
      return d.router == RouterKind::round_robin
                 ? ""
                 : fmt::format("Not said: the router {}: requests are handed out in turn.", wanted);
    case OwnRouter::none:
      break;
  }
  if (d.apart())
    return fmt::format(
        "{} brings no program that hands prompts to one engine and decodes to "
        "another: Dynamo and llm-d do (--kubernetes-as).",
        d.stack.framework);
  if (d.engines.front().replicas > 1)
    return fmt::format(
        "The engines do not know each other: a balancer of yours hands requests out "
        "({}).",
        wanted);
  return "";
}

}  // namespace orrery
