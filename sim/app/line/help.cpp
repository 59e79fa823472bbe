// SPDX-License-Identifier: Apache-2.0
// Explains commands on a terminal.
#include "sim/app/line/help.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

// `what` and its explanation beside it, or under it where `what` is too long.
std::string entry(const std::string& what, const std::string& help, std::size_t column,
                  std::size_t width) {
  const std::string hang(column, ' ');
  const std::string first = "  " + what;
  if (columns(first) + 2 > column) return first + "\n" + wrap(help, width, hang, hang);
  const std::string start = first + std::string(column - columns(first), ' ');
  return wrap(help, width, start, hang);
}

std::string flag_text(const Flag& flag) {
  return flag.value.empty() ? flag.name : flag.name + " " + flag.value;
}

std::string examples_text(const std::vector<Example>& examples, std::size_t width) {
  std::string text = examples.empty() ? "" : "\nExamples\n";
  for (const Example& example : examples)
    text +=
        wrap(example.line, width, "  ", "      ") + wrap(example.meaning, width, "    ", "    ");
  return text;
}

}  // namespace

std::vector<FlagGroup> flag_groups(const Command& command) {
  std::vector<Flag> flags = command.flags;
  const std::vector<Flag> common = common_flags();
  flags.insert(flags.end(), common.begin(), common.end());
  std::vector<FlagGroup> groups;
  for (const Flag& flag : flags) {
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const FlagGroup& group) { return group.heading == flag.group; });
    if (at == groups.end()) at = groups.insert(groups.end(), {.heading = flag.group});
    at->flags.push_back(flag);
  }
  // What every command has comes last, whichever flag of that group stood first.
  std::stable_partition(groups.begin(), groups.end(),
                        [](const FlagGroup& group) { return group.heading != output_group; });
  return groups;
}

std::string usage(const Command& command) {
  std::string text = "orrery " + command.name + " [FLAGS]";
  for (const Argument& argument : command.arguments)
    text += " [" + argument.name + "]" + (argument.many ? " ..." : "");
  return text;
}

std::vector<ExitMeaning> exit_meanings() {
  using enum ExitCode;
  return {{answer, "an answer; also the best so far at --time-limit"},
          {check_failed, "an answer whose check failed: a gate, a suspect GPU"},
          {bad_input, "bad input: one line on stderr says where, what was found and expected"},
          {cannot_exist, "it cannot exist: does not fit, cannot run, no valid layout or point"},
          {machine_failed, "the machine failed: disk full, no memory, a failed build"},
          {interrupted, "Ctrl-C (SIGINT), after what was known by then"},
          {terminated, "SIGTERM, likewise"}};
}

std::string help_text(const std::vector<Command>& commands, std::size_t width) {
  std::string text =
      wrap("Orrery predicts AI training and inference on clusters and advises layouts.", width, "",
           "") +
      "\nUsage: orrery COMMAND [FLAGS] ...\n\nCommands\n";
  constexpr std::size_t names = 14, flags = 22, codes = 7;
  for (const Command& command : commands)
    text += entry(command.name, command.summary, names, width);
  text += "\nEvery command takes\n";
  for (const Flag& flag : common_flags()) text += entry(flag_text(flag), flag.help, flags, width);
  text += entry("--help", "its arguments and flags, with examples", flags, width);
  text += entry("--version", "version of the program and of its catalogue", flags, width);
  text += entry("--shell-files DIR", "write manual pages and completions for bash and zsh there",
                flags, width);
  text += "\nExit codes\n";
  for (const ExitMeaning& exit : exit_meanings())
    text += entry(fmt::format("{}", to_int(exit.code)), exit.meaning, codes, width);
  return text + "\n" + wrap("`orrery COMMAND --help` explains a command.", width, "", "");
}

std::string help_text(const Command& command, std::size_t width) {
  std::string text =
      fmt::format("orrery {}: {}\n\nUsage: {}\n", command.name, command.summary, usage(command));
  constexpr std::size_t column = 32;
  for (const Argument& argument : command.arguments)
    text += entry(argument.name, argument.help, column, width);
  for (const FlagGroup& group : flag_groups(command)) {
    text += "\n" + group.heading + "\n";
    for (const Flag& flag : group.flags) text += entry(flag_text(flag), flag.help, column, width);
  }
  return text + examples_text(command.examples, width);
}

}  // namespace orrery
