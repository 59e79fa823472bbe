// SPDX-License-Identifier: Apache-2.0
// Takes a command line apart, with CLI11, by the table of commands.
#include "sim/app/line/line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "sim/app/answer/answer.h"
#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

const Flag* find_flag(const std::vector<Flag>& flags, const std::string& name) {
  const auto at =
      std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == name; });
  return at == flags.end() ? nullptr : &*at;
}

std::string help_of(const Command* command) {
  return command == nullptr ? "`orrery --help`" : fmt::format("`orrery {} --help`", command->name);
}

void add_flag(CLI::App& app, const Flag& flag, Given& given) {
  if (flag.value.empty())
    app.add_flag_callback(flag.name, [&given, name = flag.name] { given.flags[name] = ""; })
        ->disable_flag_override()
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  else if (flag.repeats)
    app.add_option_function<std::vector<std::string>>(
           flag.name,
           [&given, name = flag.name](const std::vector<std::string>& texts) {
             given.flags[name] = joined(texts, "\n");
           })
        ->allow_extra_args(false);
  else
    app.add_option_function<std::string>(
        flag.name, [&given, name = flag.name](const std::string& text) {
          // CLI11 takes the next flag for the value.
          if (text.starts_with("--"))
            throw Error({.file = name, .found = "nothing after it", .expected = "a value"});
          given.flags[name] = text;
        });
}

// The first word that nothing took.
Error unknown_word(const std::string& word, const Command* command,
                   const std::vector<Command>& commands) {
  const std::string owner = command == nullptr ? "" : command->name;
  const std::string listed = "what " + help_of(command) + " lists";
  if (word.size() < 2 || !word.starts_with("-")) {
    if (command != nullptr)
      return Error(
          {.file = owner, .found = in_quotes(word) + ", an argument too many", .expected = listed});
    std::vector<std::string> names;
    for (const Command& known : commands) names.push_back(known.name);
    return Error({.found = in_quotes(word),
                  .expected = names_of(commands),
                  .nearest = nearest_name(word, names)});
  }
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const Flag& flag : common_flags()) known.push_back(flag.name);
  if (command != nullptr) {
    for (const Flag& flag : command->flags) known.push_back(flag.name);
    for (const auto& [before, now] : command->renamed)
      if (name == before)
        return Error({.file = owner, .found = name + ", which has another name", .expected = now});
    for (const Command& other : commands)
      if (find_flag(other.flags, name) != nullptr)
        return Error(
            {.file = owner, .found = name + ", a flag of " + other.name, .expected = listed});
  }
  return Error({.file = owner,
                .found = "the unknown flag " + in_quotes(name),
                .expected = "one that " + help_of(command) + " lists",
                .nearest = nearest_name(name, known)});
}

// CLI11's complaint in our words.
Error flag_error(const CLI::ParseError& error) {
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string flag = text.substr(0, text.find(':'));
  if (text.find("At Most") != std::string::npos)
    return Error({.file = flag, .found = "it more than once", .expected = "it once"});
  if (text.find("missing") != std::string::npos)
    return Error({.file = flag, .found = "nothing after it", .expected = "a value"});
  if (text.find("flag override") != std::string::npos)
    return Error({.file = "--" + text.substr(0, text.find(' ')),
                  .found = "a value",
                  .expected = "nothing after this flag"});
  return Error({.found = text, .expected = "what `orrery --help` lists"});
}

}  // namespace

ParsedLine parse_line(const std::vector<std::string>& words, const std::vector<Command>& commands) {
  ParsedLine line;
  CLI::App app;
  app.set_help_flag();
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.allow_extras();
  app.add_flag_callback("-h,--help", [&line] { line.help = true; });
  app.add_flag_callback("--version", [&line] { line.version = true; });
  app.add_option("--shell-files", line.shell_files);
  for (const Flag& flag : common_flags()) add_flag(app, flag, line.given);
  for (const Command& command : commands) {
    CLI::App* part = app.add_subcommand(command.name);
    part->set_help_flag();
    part->allow_extras();
    // A command that no word names takes none.
    if (std::find(words.begin(), words.end(), command.name) == words.end()) continue;
    for (const Flag& flag : command.flags) add_flag(*part, flag, line.given);
    part->preparse_callback([&line, &command](std::size_t) { line.command = &command; });
  }
  // What follows a lone "--" are words, whatever they look like.
  const auto end = std::find(words.begin(), words.end(), "--");
  const bool asks = std::any_of(words.begin(), end, [](const std::string& word) {
    return word == "--help" || word == "-h" || word == "--version";
  });
  try {
    app.parse(std::vector<std::string>(std::make_reverse_iterator(end), words.rend()));
  } catch (const CLI::ParseError& error) {
    if (!asks) throw flag_error(error);
    line.help = !line.version;
    return line;
  }
  std::vector<std::string> left = app.remaining(true);
  const std::size_t before = left.size();
  if (end != words.end()) left.insert(left.end(), end + 1, words.end());
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::string& word = left[i];
    const bool flag = i < before && word.size() > 1 && word.starts_with("-");
    const bool takes = line.command != nullptr && !flag &&
                       (line.given.words.size() < line.command->arguments.size() ||
                        (!line.command->arguments.empty() && line.command->arguments.back().many));
    if (takes)
      line.given.words.push_back(word);
    else if (!asks)
      throw unknown_word(word, line.command, commands);
  }
  return line;
}
std::string names_of(const std::vector<Command>& commands) {
  std::string names;
  for (std::size_t i = 0; i < commands.size(); ++i)
    names += (i == 0 ? "" : i + 1 == commands.size() ? " or " : ", ") + commands[i].name;
  return names;
}

std::string Given::text(const std::string& flag) const {
  const auto at = flags.find(flag);
  return at == flags.end() ? "" : at->second;
}

std::string Given::word(std::size_t i) const { return i < words.size() ? words[i] : ""; }

std::string Given::needed(const std::string& flag, const std::string& expected) const {
  if (!has(flag)) throw Error({.file = flag, .found = "nothing", .expected = expected});
  return text(flag);
}

SortedJson question_of_flags(const Given& given, std::initializer_list<const char*> flags) {
  SortedJson question = SortedJson::object();
  for (const char* flag : flags)
    if (given.has(flag)) question[json_key(flag + 2)] = given.text(flag);
  return question;
}

std::string Given::place(const std::string& flag) const {
  if (has(flag) && text(flag).empty())
    throw Error({.file = flag, .found = in_quotes(""), .expected = "a file or a folder"});
  return text(flag);
}

std::vector<Flag> common_flags() {
  return {{"--json", "", output_group, "print the whole result as JSON"},
          {"--quiet", "", output_group, "no progress on stderr"},
          {"--threads", "N", output_group, "threads to use (default: all cores)"}};
}

Flag seed_flag() { return {"--seed", "N", output_group, "of random draws"}; }

Flag markdown_flag() {
  return {"--markdown", "", output_group, "print the whole report as markdown, tables uncut"};
}

CommonFlags common_of(const Given& given) {
  CommonFlags common{.json = given.has("--json"),
                     .quiet = given.has("--quiet"),
                     .markdown = given.has("--markdown")};
  if (given.has("--threads"))
    common.threads = static_cast<int>(whole_number("--threads", given.text("--threads"), 0, 4096));
  if (given.has("--seed"))
    common.seed = static_cast<std::uint64_t>(
        whole_number("--seed", given.text("--seed"), 0, std::numeric_limits<std::int64_t>::max()));
  if (common.json && common.markdown)
    throw Error({.file = "--markdown", .found = "--json too", .expected = "one of the two"});
  return common;
}

}  // namespace orrery
