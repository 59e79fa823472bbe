// SPDX-License-Identifier: Apache-2.0
// Writes completions of bash and zsh.
#include "sim/app/line/completion.h"

#include <fmt/format.h>

#include "sim/app/line/man.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

constexpr const char* catalog_prefix = "catalog ";
constexpr const char* of_second_word = "catalog #1";  // the kind is the word before

// What bash offers for a value: words, files, or names of a catalogue with files beside them.
std::string bash_offer(const std::string& completes) {
  if (completes == "file") return "_orrery_files";
  if (completes == "folder") return "_orrery_folders";
  if (completes == of_second_word) return "_orrery_names \"${given[1]}\"";
  if (completes.starts_with(catalog_prefix))
    return "_orrery_names " + completes.substr(std::string(catalog_prefix).size());
  return "_orrery_words \"" + completes + "\"";
}

constexpr const char* place_of_switches = "@switches@";
constexpr const char* bash_head =
    R"sh(# Completion of orrery for bash; made from its table of commands.
_orrery_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_orrery_files() { compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); }
_orrery_folders() { compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); }
_orrery_names() {
  mapfile -t COMPREPLY < <(
    compgen -W "$("${COMP_WORDS[0]}" catalog list "$1" --names 2>/dev/null)" -- "$cur"
    compgen -f -- "$cur"
  )
}
_orrery() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command="" i word
  local switches="@switches@"
  local -a given=()
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
      -*) [[ $switches == *" $word "* ]] || i=$((i + 1)) ;; # its value is no word of the command
      *) if [ -z "$command" ]; then command=$word; else given+=("$word"); fi ;;
    esac
  done
)sh";

std::string bash_flags(const Command& command) {
  std::string names = "--help --version";
  for (const auto& flags : {command.flags, common_flags()})
    for (const Flag& flag : flags) names += " " + flag.name;
  return names;
}

// `zsh` reads a description up to its bracket, and a colon ends a field.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string zsh_offer(const std::string& completes) {
  if (completes.empty()) return " ";
  if (completes == "file") return "_files";
  if (completes == "folder") return "_files -/";
  if (completes == of_second_word) return "_orrery_names $words[3]";
  if (completes.starts_with(catalog_prefix))
    return "_orrery_names " + completes.substr(std::string(catalog_prefix).size());
  return "(" + completes + ")";
}

std::string zsh_flag(const Flag& flag) {
  const std::string value =
      flag.value.empty() ? "" : ":" + zsh_text(flag.value) + ":" + zsh_offer(flag.completes);
  return fmt::format("        '{}[{}]{}' \\\n", flag.name, zsh_text(flag.help), value);
}

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::string switches = " --help --version ", names, flags, words;
  for (const Command& command : commands)
    for (const auto& list : {command.flags, common_flags()})
      for (const Flag& flag : list)
        if (flag.value.empty() && switches.find(" " + flag.name + " ") == std::string::npos)
          switches += flag.name + " ";
  std::string text = bash_head;
  text.replace(text.find(place_of_switches), std::string(place_of_switches).size(), switches);
  text += "  case \"$command $before\" in\n";
  for (const Command& command : commands) {
    names += command.name + " ";
    flags += fmt::format("      {}) _orrery_words \"{}\" ;;\n", command.name, bash_flags(command));
    for (const Flag& flag : command.flags)
      if (!flag.value.empty()) {
        const std::string offer = flag.completes.empty() ? ":" : bash_offer(flag.completes);
        text += fmt::format("    \"{} {}\") {}; return ;;\n", command.name, flag.name, offer);
      }
    for (std::size_t i = 0; i < command.arguments.size(); ++i)
      words +=
          fmt::format("    \"{} {}\"{}) {} ;;\n", command.name, i,
                      command.arguments[i].many ? fmt::format(" | \"{} \"*", command.name) : "",
                      bash_offer(command.arguments[i].completes));
  }
  text += "  esac\n  if [[ $cur == -* ]]; then\n    case $command in\n" + flags +
          "      *) _orrery_words \"--help --version\" ;;\n    esac\n    return\n  fi\n";
  text += "  if [ -z \"$command\" ]; then\n    _orrery_words \"" + names +
          "\"\n    return\n  fi\n  case \"$command ${#given[@]}\" in\n";
  return text + words + "    *) _orrery_files ;;\n  esac\n}\ncomplete -F _orrery orrery\n";
}

std::string zsh_completion(const std::vector<Command>& commands) {
  std::string text =
      "#compdef orrery\n# Made from orrery's table of commands.\n"
      "_orrery_names() {\n  local -a names\n"
      "  names=(${(f)\"$(_call_program names orrery catalog list $1 --names 2>/dev/null)\"})\n"
      "  compadd -a names\n  _files\n}\n_orrery() {\n  local -a commands\n"
      "  commands=(\n";
  for (const Command& command : commands)
    text += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
  text +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  case $words[2] in\n";
  for (const Command& command : commands) {
    text += fmt::format("    {})\n      shift words; ((CURRENT--))\n      _arguments \\\n",
                        command.name);
    for (const auto& flags : {command.flags, common_flags()})
      for (const Flag& flag : flags) text += zsh_flag(flag);
    for (const Argument& argument : command.arguments)
      text += fmt::format("        '{}:{}:{}' \\\n", argument.many ? "*" : "", argument.name,
                          zsh_offer(argument.completes));
    text += "        '--help[explain this command]'\n      ;;\n";
  }
  return text + "  esac\n}\n_orrery \"$@\"\n";
}

void write_shell_files(const std::vector<Command>& commands, const std::filesystem::path& share) {
  const auto write = [&](const std::filesystem::path& file, const std::string& text) {
    make_folder((share / file).parent_path());
    write_file(share / file, text);
  };
  write("man/man1/orrery.1", man_page(commands));
  for (const Command& command : commands)
    write("man/man1/orrery-" + command.name + ".1", man_page(command));
  write("bash-completion/completions/orrery", bash_completion(commands));
  write("zsh/site-functions/_orrery", zsh_completion(commands));
}

}  // namespace orrery
