// SPDX-License-Identifier: Apache-2.0
// Chooses the program of a stack, and writes the shell's words.
#include "sim/launch/script/program.h"

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/text/shell.h"

namespace orrery {

std::string no_script_reason(const Stack& stack, const Job& job) {
  if (!is_training(job.task)) return fmt::format("phase {}", to_text(job.task));
  switch (stack.launcher) {
    case Launcher::megatron_lm:
    case Launcher::megatron_bridge:
    case Launcher::nemo2:
    case Launcher::torchtitan:
    case Launcher::deepspeed:
    case Launcher::maxtext:
      return "";
    case Launcher::nemo1:
    case Launcher::megatron_deepspeed:
    case Launcher::automodel:
    case Launcher::nanotron:
    case Launcher::primus:
    case Launcher::neuronx:
    case Launcher::gaudi_megatron:
      return fmt::format("stack {}, started by {}, for which flags are printed but no script made",
                         stack.name, to_text(stack.launcher));
    case Launcher::scripts:
    case Launcher::unpublished:
      break;
  }
  return fmt::format("stack {}, which no public program starts", stack.name);
}

LaunchProgram launch_program(const Scenario& s, const LaunchFlags& flags, const HostPlan& plan) {
  switch (s.stack.launcher) {
    case Launcher::megatron_lm:
      return megatron_program(s, flags);
    case Launcher::megatron_bridge:
      return bridge_program(s, flags);
    case Launcher::nemo2:
      return nemo2_program(s, flags, plan);
    case Launcher::torchtitan:
      return torchtitan_program(s, flags);
    case Launcher::deepspeed:
      return deepspeed_program(s, flags);
    case Launcher::maxtext:
      return maxtext_program(s, flags, plan);
    default:
      break;
  }
  CHECK_THAT(false, "no_script_reason lets only these through");
  return {};
}

std::string shell_array(const std::string& name, const std::vector<std::string>& items) {
  std::string text = name + "=(\n";
  for (const std::string& item : items) text += "  " + item + "\n";
  return text + ")\n";
}

std::string quoted_word(const std::string& text) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  return shell_quoted(text);
}

std::string flag_item(const LaunchFlag& flag) {
  return flag.value.empty() ? flag.name : flag.name + " " + flag.value;
}

std::string bare_value(const std::string& value) {
  const bool quoted = value.size() >= 2 && value.front() == '\'' && value.back() == '\'';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

}  // namespace orrery
