// SPDX-License-Identifier: Apache-2.0
// Writes heads, checks and the start of a host's ranks.
#include "sim/launch/script/script_parts.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "sim/base/text/words.h"
#include "sim/launch/object_name.h"

namespace orrery {
namespace {

constexpr std::size_t columns = 100;

// Letters, digits and dashes, as names of Kubernetes' objects may have.
std::string plain_name(const std::string& text) {
  const std::string name = object_label(text.substr(text.find_last_of('/') + 1), 40);
  const bool letter = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0;
  return letter ? name : "job-" + (name.empty() ? "of-ranks" : name);
}

std::string hosts_in_words(const ScriptSubject& s) {
  const HostPlan& p = s.plan;
  std::string text =
      fmt::format("{} of {} ranks", plural(p.hosts, "host"),
                  p.last_ranks == p.ranks ? fmt::format("{}", p.ranks)
                                          : fmt::format("{} (the last {})", p.ranks, p.last_ranks));
  if (p.ranks < p.accelerators) text += fmt::format(", each with {} accelerators", p.accelerators);
  return text;
}

// Ranks count through hosts, so that hosts of a domain must be neighbours.
std::string domains_in_words(const HostPlan& p) {
  if (p.hosts_per_domain <= 1 || p.hosts <= p.hosts_per_domain) return "";
  return fmt::format(
      "Ranks count through the hosts, {} of each scale-up domain of {}: the scheduler must give "
      "hosts in such blocks, in order.",
      p.hosts_per_domain, p.domain_hosts);
}

std::string prediction_in_words(const ScriptSubject& s) {
  const ScriptNote& n = s.note;
  std::string text = fmt::format("{:.4g} s a step", n.step_time.si());
  if (n.low < n.step_time || n.high > n.step_time)
    text += fmt::format(" (90% range {:.3g} to {:.3g})", n.low.si(), n.high.si());
  return text + fmt::format(" of {} sequences of {} tokens, {} tokens a second and accelerator",
                            grouped(s.scenario.job.global_batch), grouped(s.scenario.job.sequence),
                            grouped(n.tokens_per_second_per_gpu));
}

}  // namespace

ScriptSubject script_subject(const Scenario& scenario, const LaunchFlags& flags,
                             const ScriptNote& note) {
  const HostPlan plan = host_plan(scenario);
  return {.scenario = scenario,
          .flags = flags,
          .note = note,
          .plan = plan,
          .program = launch_program(scenario, flags, plan),
          .name = plain_name(scenario.model.name)};
}

std::string comment(const std::string& text) {
  const bool item = text.starts_with("- ");
  std::string out, line = "#";
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_of(" \n\t\r", at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (line.size() + 1 + word.size() > columns && line.find_first_not_of("# ") != line.npos) {
      out += line + "\n";
      line = item ? "#  " : "#";
    }
    line += " " + word;
  }
  return out + line + "\n";
}

std::string script_head(const ScriptSubject& s, const std::vector<std::string>& start) {
  const Scenario& scenario = s.scenario;
  std::string out = comment(fmt::format("Made by {}: {} on {}, {} accelerators.", s.note.made_by,
                                        scenario.model.name, scenario.cluster.name,
                                        grouped(scenario.layout.gpus())));
  out += comment(fmt::format("Layout: {}. {}.", to_text(scenario.layout), hosts_in_words(s)));
  out += comment(fmt::format("Predicted: {}.", prediction_in_words(s)));
  out += comment(fmt::format("Program: {}.", s.flags.program));
  out += "#\n";
  for (const std::string& line : start) out += comment(line);
  out += "#\n# Left to you:\n";
  std::vector<std::string> left;
  for (const FlagNote& note : s.flags.missing) left.push_back(note.sentence);
  for (const std::string& sentence : s.program.left) left.push_back(sentence);
  if (const std::string domains = domains_in_words(s.plan); !domains.empty())
    left.push_back(domains);
  left.emplace_back(
      "Network settings of the cluster (interfaces, NCCL or RCCL variables), checkpoints, logging "
      "and evaluation.");
  for (const std::string& sentence : left) out += comment("- " + sentence);
  return out;
}

std::string checks(const LaunchProgram& program) {
  const auto check = [](const ReaderValue& v) {
    return fmt::format(": \"${{{}:?set {} to {}}}\"\n", v.name, v.name, v.meaning);
  };
  std::string out, data;
  for (const ReaderValue& v : program.needs) (v.data ? data : out) += check(v);
  if (data.empty()) return out;
  out +=
      "if [ \"${MOCK_DATA:-0}\" != 1 ]; then  # 1: random tokens, for a first run without data\n";
  for (std::size_t at = 0; at < data.size();) {
    const std::size_t end = data.find('\n', at) + 1;
    out += "  " + data.substr(at, end - at);
    at = end;
  }
  return out + "fi\n";
}

std::string environment(const LaunchFlags& flags) {
  std::string out;
  for (const std::string& setting : flags.environment) {
    const std::size_t equals = setting.find('=');
    out += fmt::format("export {}={}\n", setting.substr(0, equals),
                       quoted_word(setting.substr(equals + 1)));
  }
  return out;
}

std::string start_ranks(const ScriptSubject& s, const std::string& host, const std::string& id) {
  const HostPlan& p = s.plan;
  if (!s.program.torchrun)
    return fmt::format(
        "export JAX_COORDINATOR_IP=$MASTER_ADDR JAX_COORDINATOR_PORT=$MASTER_PORT\n"
        "export NNODES={} NODE_RANK=${}\nexec \"$@\"\n",
        p.hosts, host);
  std::string out = fmt::format("ranks={}\n", p.ranks);
  if (p.last_ranks != p.ranks)
    out +=
        fmt::format("if [ \"${}\" -eq {} ]; then ranks={}; fi\n", host, p.hosts - 1, p.last_ranks);
  return out + fmt::format(
                   "exec torchrun --nnodes {} --nproc-per-node \"$ranks\" --node-rank \"${}\" \\\n"
                   "  --rdzv-backend static --rdzv-id {} "
                   "--rdzv-endpoint \"$MASTER_ADDR:$MASTER_PORT\" \"$@\"\n",
                   p.hosts, host, id);
}

}  // namespace orrery
