// SPDX-License-Identifier: Apache-2.0
// Knows what a command is: its arguments and flags, how it is explained, and what runs it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/answer/exit_code.h"
#include "sim/app/answer/printed.h"
#include "sim/base/json/tree.h"

namespace orrery {

// `completes` says what a shell may complete a value with: "" (nothing), "file", "folder",
// "catalog model" (names of that kind) or words divided by blanks.
struct Flag {
  std::string name;   // "--global-batch"
  std::string value;  // what stands after it: "N"; empty: nothing
  std::string group;  // the heading of the help that it stands under
  std::string help;
  std::string completes = {};
  bool repeats = false;  // it may stand several times: Given holds a line for each
};

struct Argument {
  std::string name;  // "question"
  std::string help;
  std::string completes = {};
  bool many = false;  // the last one may take all words that are left
};

struct Example {
  std::string line;     // "orrery advise --model ..."
  std::string meaning;  // what it finds
};

// What a command line holds, as text. A flag with a value stands there at most once, or repeats.
struct Given {
  std::map<std::string, std::string> flags = {};  // "--tp": "8"; "" for one without a value
  std::vector<std::string> words = {};            // arguments, in order

  bool has(const std::string& flag) const { return flags.contains(flag); }
  std::string text(const std::string& flag) const;  // "" where it was not given
  std::string word(std::size_t i) const;            // "" where there are fewer
  // Error where it was not given: it says what was expected.
  std::string needed(const std::string& flag, const std::string& expected) const;
  std::string place(const std::string& flag) const;  // text of a flag that names a file or a
                                                     // folder: an empty name is an Error
};

struct SharedRun;
class SharedWork;

struct Command {
  std::string name;
  std::string summary;  // one line, as in the list of commands
  std::vector<Argument> arguments = {};
  std::vector<Flag> flags = {};  // its own; those that every command takes come on top
  std::vector<Example> examples = {};
  std::vector<std::pair<std::string, std::string>> renamed = {};  // a flag of before, and its name
  // One of the two: what prints as it goes, or what is printed at its end.
  ExitCode (*run)(const Given& given) = nullptr;
  Printed (*answer)(const Given& given) = nullptr;
  // Its part in a question that processes share (--results); none: it has no such flags.
  ExitCode (*share)(const SharedRun& run, SharedWork& work, const Given& given) = nullptr;
};

// Flags that every command takes.
std::vector<Flag> common_flags();

// What the flags that every command takes say, and two that several do.
struct CommonFlags {
  bool json = false, quiet = false, markdown = false;
  int threads = 0;  // 0: all cores
  std::optional<std::uint64_t> seed;
};
CommonFlags common_of(const Given& given);

// Those of the flags that were given, as a question holds them: "--jobs-out" is "jobs_out".
SortedJson question_of_flags(const Given& given, std::initializer_list<const char*> flags);

Flag seed_flag();
Flag markdown_flag();
inline constexpr const char* output_group = "Output";

}  // namespace orrery
