// SPDX-License-Identifier: Apache-2.0
// Writes manual pages.
#include "sim/app/line/man.h"

#include <fmt/format.h>

#include "sim/app/answer/version.h"
#include "sim/app/line/help.h"

namespace orrery {
namespace {

// Text as roff sets it: no mark of its own in it, and none at the start of a line.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with(".") || out.starts_with("'") ? "\\&" + out : out;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

std::string head(const std::string& name, const std::string& summary) {
  std::string title = name;
  for (char& c : title)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return fmt::format(".TH {} 1 \"\" \"orrery {}\" \"Orrery\"\n.SH NAME\n{} \\- {}\n", roff(title),
                     roff(program_version()), roff(name), roff(summary));
}

std::string item(const std::string& what, const std::string& help) {
  return ".TP\n" + what + "\n" + roff(help) + "\n";
}

std::string flag_item(const Flag& flag) {
  const std::string value = flag.value.empty() ? "" : " " + italic(flag.value);
  return item(bold(flag.name) + value, flag.help);
}

std::string exit_section() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitMeaning& exit : exit_meanings())
    text += item(bold(fmt::format("{}", to_int(exit.code))), exit.meaning);
  return text;
}

std::string environment_section() {
  return ".SH ENVIRONMENT\n" +
         item(bold("ORRERY_DATA"), "the folder of catalogues to use in place of the shipped ones") +
         item(bold("COLUMNS"), "how wide text is set on a terminal, from 80 to 140");
}

}  // namespace

std::string man_page(const std::vector<Command>& commands) {
  std::string text = head("orrery", "performance model of AI clusters");
  text += ".SH SYNOPSIS\n" + bold("orrery") + " " + italic("COMMAND") + " [" + italic("FLAGS") +
          "] ...\n.SH DESCRIPTION\n" +
          roff("Orrery predicts AI training and inference on clusters and advises layouts.") +
          "\n.SH COMMANDS\n";
  for (const Command& command : commands)
    text += item("\\fBorrery\\-" + roff(command.name) + "\\fR(1)", command.summary);
  text += ".SH OPTIONS\n";
  for (const Flag& flag : common_flags()) text += flag_item(flag);
  text += item(bold("--help"), "arguments and flags of a command, with examples") +
          item(bold("--version"), "version of the program and of its catalogue") +
          item(bold("--shell-files") + " " + italic("DIR"),
               "write these pages and completions for bash and zsh into a folder");
  return text + exit_section() + environment_section();
}

std::string man_page(const Command& command) {
  std::string text = head("orrery-" + command.name, command.summary);
  text += ".SH SYNOPSIS\n" + roff(usage(command)) + "\n";
  if (!command.arguments.empty()) text += ".SH ARGUMENTS\n";
  for (const Argument& argument : command.arguments)
    text += item(italic(argument.name), argument.help);
  text += ".SH OPTIONS\n";
  for (const FlagGroup& group : flag_groups(command)) {
    text += ".SS " + roff(group.heading) + "\n";
    for (const Flag& flag : group.flags) text += flag_item(flag);
  }
  text += ".SH EXAMPLES\n";
  for (const Example& example : command.examples) text += item(roff(example.line), example.meaning);
  return text + exit_section() + environment_section() + ".SH SEE ALSO\n.BR orrery (1)\n";
}

}  // namespace orrery
