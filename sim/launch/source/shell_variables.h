// SPDX-License-Identifier: Apache-2.0
// Knows a script's variables, and what words become with them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/launch/source/said.h"
#include "sim/launch/source/shell_lexer.h"

namespace orrery {

// A variable holds one text or a list. What nobody can tell without a run is marked (marks.h).
class ShellVariables {
 public:
  explicit ShellVariables(std::string file) : file_(std::move(file)) {}

  void set(const std::string& name, std::vector<ShellWord> values, bool list);
  void append(const std::string& name, const std::vector<ShellWord>& values, bool list);
  struct How {
    bool list, appends;
  };
  // Nobody can tell whether this happens. What comes behind the value that there is is marked; a
  // new value is none that is known.
  void set_under_condition(const std::string& name, const std::vector<ShellWord>& values, How how);
  void forget(const std::string& name, const std::string& why);
  bool is_list(const std::string& name) const;

  // A word as the words that it stands for, each where it was written: none for an empty variable,
  // several for a list or for text with blanks. `split` false: one word, as behind "NAME=".
  std::vector<ShellWord> words(const std::vector<WordPart>& parts, std::int64_t line, bool split);
  std::string word(const std::vector<WordPart>& parts, std::int64_t line);
  // nullopt: it cannot be told.
  std::optional<std::int64_t> number(const std::string& expression, std::int64_t line);

  struct Value {
    std::vector<ShellWord> values;
    bool list = false;
    std::string text() const;  // all of it, with blanks between
  };
  const std::map<std::string, Value>& all() const { return variables_; }

 private:
  struct Part {
    std::vector<ShellWord> values;
    bool list = false;  // each value is a word of its own
  };
  Part expanded(const WordPart& part, std::int64_t line);
  Part braces(const std::string& text, std::int64_t line, bool quoted);
  Part plain(const std::string& name) const;
  std::optional<std::string> known(const std::string& name) const;
  void grow(std::size_t size, std::int64_t line);

  std::string file_;
  std::map<std::string, Value> variables_;
  std::size_t made_ = 0;  // bytes of all expansions: scripts that double a text end here
  int depth_ = 0;
};

// A whole number that an expression of a shell has; `value` gives that of a name. nullopt where it
// has none: unknown names, division by zero, more than 63 bits, signs that are not arithmetic.
std::optional<std::int64_t> shell_arithmetic(
    std::string_view text,
    const std::function<std::optional<std::int64_t>(const std::string&)>& value);

}  // namespace orrery
