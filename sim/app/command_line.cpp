// Takes a command line apart.
#include "sim/app/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/app/settings.h"
#include "sim/base/check.h"

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

// Reads word by word; what a flag takes depends on the command before it.
class Parser {
 public:
  Parser(const std::vector<std::string>& words, const std::vector<Command>& commands)
      : words_(words), commands_(commands), common_(common_flags()) {}

  ParsedLine parse() {
    for (; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word == "--help" || word == "-h")
        line_.help = true;
      else if (word == "--version")
        line_.version = true;
      else if (word == "--shell-files" && line_.command == nullptr && at_ + 1 < words_.size())
        line_.shell_files = words_[++at_];
      else if (word == "--" && !only_words_)
        only_words_ = true;
      else if (!only_words_ && word.size() > 1 && word.starts_with("-"))
        read_flag(word);
      else
        read_word(word);
    }
    if (unknown_ && !line_.help && !line_.version) throw Error(*unknown_);
    return std::move(line_);
  }

 private:
  // The first fault is told, unless help is asked for further on.
  void refuse(ErrorInfo info) {
    if (!unknown_) unknown_ = std::move(info);
  }

  void read_word(const std::string& word) {
    if (line_.command == nullptr) {
      const auto at = std::find_if(commands_.begin(), commands_.end(),
                                   [&](const Command& c) { return c.name == word; });
      if (at != commands_.end()) {
        line_.command = &*at;
        return;
      }
      std::vector<std::string> known;
      for (const Command& command : commands_) known.push_back(command.name);
      refuse({.found = in_quotes(word),
              .expected = names_of(commands_),
              .nearest = nearest_name(word, known)});
      return;
    }
    const std::vector<Argument>& arguments = line_.command->arguments;
    const bool many = !arguments.empty() && arguments.back().many;
    if (!many && line_.given.words.size() == arguments.size())
      refuse({.file = line_.command->name,
              .found = in_quotes(word) + ", an argument too many",
              .expected = "what " + help_of(line_.command) + " lists"});
    line_.given.words.push_back(word);
  }

  const Flag* known_flag(const std::string& name) const {
    if (const Flag* flag = find_flag(common_, name)) return flag;
    return line_.command == nullptr ? nullptr : find_flag(line_.command->flags, name);
  }

  void read_flag(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Flag* flag = known_flag(name);
    if (flag == nullptr) return refuse(unknown_flag(name));
    if (line_.given.has(name) && !flag->value.empty())
      return refuse({.file = name, .found = "it more than once", .expected = "it once"});
    std::string& value = line_.given.flags[name];
    if (flag->value.empty()) {
      if (equals != std::string::npos)
        refuse({.file = name, .found = "a value", .expected = "nothing after this flag"});
      return;
    }
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
      return;
    }
    const bool next = at_ + 1 < words_.size() && !words_[at_ + 1].starts_with("--");
    if (!next) return refuse({.file = name, .found = "nothing after it", .expected = "a value"});
    value = words_[++at_];
  }

  ErrorInfo unknown_flag(const std::string& name) const {
    const std::string owner = line_.command == nullptr ? "" : line_.command->name;
    const std::string listed = "what " + help_of(line_.command) + " lists";
    std::vector<std::string> known;
    for (const Flag& flag : common_) known.push_back(flag.name);
    if (line_.command != nullptr) {
      for (const Flag& flag : line_.command->flags) known.push_back(flag.name);
      for (const auto& [before, now] : line_.command->renamed)
        if (name == before)
          return {.file = owner, .found = name + ", which has another name", .expected = now};
      for (const Command& other : commands_)
        if (find_flag(other.flags, name) != nullptr)
          return {.file = owner, .found = name + ", a flag of " + other.name, .expected = listed};
    }
    return {.file = owner,
            .found = "the unknown flag " + in_quotes(name),
            .expected = "one that " + help_of(line_.command) + " lists",
            .nearest = nearest_name(name, known)};
  }

  const std::vector<std::string>& words_;
  const std::vector<Command>& commands_;
  const std::vector<Flag> common_;
  ParsedLine line_;
  std::size_t at_ = 0;
  bool only_words_ = false;
  std::optional<ErrorInfo> unknown_;
};

}  // namespace

ParsedLine parse_line(const std::vector<std::string>& words, const std::vector<Command>& commands) {
  return Parser(words, commands).parse();
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
