// SPDX-License-Identifier: Apache-2.0
// Takes commands of scripts apart.
#include "sim/launch/configurations/commands.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/launch/source/marks.h"
#include "sim/launch/source/trees.h"

namespace orrery {
namespace {

bool is_flag(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  return word[1] == '-' ? word.size() > 2 : std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

// "$EXTRA_ARGS": flags that nobody knows, not the value of the flag before it.
bool holds_flags(const std::string& word) {
  if (!is_mark(word)) return false;
  std::string name = shown(word);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (name == "$@" || name == "$*") return true;
  for (const char* part : {"ARG", "OPT", "FLAG", "CMD", "EXTRA", "PARAM", "CONFIG_STR"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

bool is_override(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  for (const char c : word.substr(0, equals))
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.' && c != '+' &&
        c != '~' && c != '-' && c != '/')
      return false;
  return word[0] != '-';
}

std::string without_quotes(std::string text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return text;
}

// Where the program's own words begin, and which program it is where its name tells.
struct Begin {
  std::size_t launcher = 0;  // the words before are what starts it
  std::size_t at = 0;
  std::optional<GivenProgram> program = {};
  std::string script = {};  // of Python
};

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// How many words at `at` are the command; 0: it is another.
std::size_t words_of_command(const std::vector<ShellWord>& words, std::size_t at,
                             std::string_view command) {
  std::size_t count = 0;
  while (!command.empty()) {
    const std::size_t end = std::min(command.find(' '), command.size());
    const std::string_view pattern = command.substr(0, end);
    command.remove_prefix(std::min(end + 1, command.size()));
    if (at + count >= words.size()) return 0;
    const std::string& word = words[at + count].text;
    if (!fits_pattern(word, pattern) && !fits_pattern(last_part(word), pattern)) return 0;
    ++count;
  }
  return count;
}

std::optional<Begin> named_program(const std::vector<ShellWord>& words, std::size_t at) {
  std::optional<Begin> best;
  for (const ProgramSigns& signs : program_signs())
    for (const std::string& command : signs.commands)
      if (const std::size_t count = words_of_command(words, at, command);
          count > 0 && (!best || at + count > best->at))
        best = Begin{at, at + count, signs.program};
  return best;
}

Begin begin_of(const std::vector<ShellWord>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (const auto named = named_program(words, i)) return *named;
    const std::string& word = words[i].text;
    if (word == "-m" && i + 1 < words.size()) {
      const std::string& module = words[++i].text;
      // What starts a program on all ranks of a host, not the program.
      if (module.starts_with("torch.distributed") || module.starts_with("accelerate")) continue;
      return {i - 1, i + 1, {}};
    }
    if (word.ends_with(".py") && !is_flag(word))
      return {.launcher = i, .at = i + 1, .script = word};
    const std::string name = last_part(word);
    if (name == "llamafactory-cli" || name == "trl") return {i, i + 1, {}};
  }
  return {0, 0, {}};
}

}  // namespace

std::vector<Said> said_of_words(const std::vector<ShellWord>& words, std::size_t from,
                                std::size_t to, const std::string& file) {
  std::vector<Said> out;
  bool takes_values = false;  // the last flag has none behind a "=", and no end was seen
  for (std::size_t i = from; i < to; ++i) {
    const std::string& word = words[i].text;
    Said said{file, words[i].line, "", SortedJson()};
    if (is_flag(word)) {
      const std::size_t equals = word.find('=');
      takes_values = equals == std::string::npos;
      said.name = shown(word.substr(0, equals));
      said.value = equals == std::string::npos
                       ? SortedJson(true)
                       : SortedJson(without_quotes(word.substr(equals + 1)));
      if (takes_values && has_mark(word)) said.value = "true" + marks_of(word);
      out.push_back(std::move(said));
    } else if (holds_flags(word)) {
      said.name = shown(word);
      said.value = word;
      out.push_back(std::move(said));
      takes_values = false;
    } else if (takes_values && !out.empty() &&
               !(is_override(word) && !out.back().value.is_boolean())) {
      SortedJson& value = out.back().value;
      if (value.is_boolean() || (value.is_string() && value.text().starts_with("true\x01")))
        value = word;
      else if (value.is_array())
        value.push_back(word);
      else
        value = SortedJson::array({value, word});
    } else if (is_override(word)) {
      const std::size_t equals = word.find('=');
      said.name = word.substr(0, equals);
      said.name.erase(0, std::min(said.name.find_first_not_of("+~"), said.name.size()));
      said.value = without_quotes(word.substr(equals + 1));
      out.push_back(std::move(said));
    } else {
      said.value = word;
      out.push_back(std::move(said));
    }
  }
  return out;
}

// A file of arguments, one a line, is one command.
static std::vector<ShellCommand> joined_arguments(const std::vector<ShellCommand>& commands) {
  ShellCommand all;
  for (const ShellCommand& command : commands) {
    const std::string& first = command.words.front().text;
    if (!is_flag(first) && !is_override(first)) return commands;
    all.words.insert(all.words.end(), command.words.begin(), command.words.end());
  }
  return all.words.empty() ? commands : std::vector<ShellCommand>{all};
}

std::optional<StartedCommand> started_command(const ShellScript& script, const std::string& file,
                                              int& others) {
  std::optional<StartedCommand> best;
  others = 0;
  for (const ShellCommand& command : joined_arguments(script.commands)) {
    const std::string& first = command.words.front().text;
    if (first == "echo" || first == "printf" || first == "cat") continue;
    const Begin begin = begin_of(command.words);
    StartedCommand one;
    one.said = said_of_words(command.words, begin.at, command.words.size(), file);
    // A program that the script itself writes.
    if (const auto own = script.files.find(begin.script);
        own != script.files.end() && !has_mark(own->second)) {
      const std::vector<Said> settings = read_python(own->second, file);
      one.said.insert(one.said.begin(), settings.begin(), settings.end());
    }
    one.launcher = said_of_words(command.words, 0, begin.launcher, file);
    const auto known = program_of(one.said);
    if (known) one.program = known->program;
    if (begin.program) one.program = begin.program;
    one.score = (known ? known->score : 0) + (begin.program ? 10 : 0);
    // A script whose file of settings says which program it is.
    const bool names_file = std::any_of(one.said.begin(), one.said.end(), [](const Said& said) {
      const std::string text = said.value.is_string() ? said.value.text() : "";
      return text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".toml") ||
             text.ends_with(".json");
    });
    if (one.score == 0 && !(names_file && begin.at > 0)) continue;
    if (!best || one.score > best->score) {
      others = best && best->program == one.program && best->score > 2 ? others + 1 : 0;
      best = std::move(one);
    } else if (one.program == best->program && one.score > 2) {
      ++others;
    }
  }
  return best;
}

}  // namespace orrery
