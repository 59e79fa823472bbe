// SPDX-License-Identifier: Apache-2.0
// Knows the form in which all configurations are held: names and values, each with its place.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"

namespace orrery {

// One thing that a configuration says. Names are as written: "--tensor-model-parallel-size",
// "parallelism.tensor_parallel_degree". A value of a script is text, several are an array, a flag
// without one is `true`; text may hold marks (marks.h).
struct Said {
  std::string file;
  std::int64_t line = 0;  // 0: the format tells none
  std::string name;
  SortedJson value;
  std::string place() const;  // "train.sh:12"
};

struct ShellWord {
  std::string text;
  std::int64_t line = 0;
};
// A command of a script with its words as they would be started, as far as that can be told.
struct ShellCommand {
  std::vector<ShellWord> words;
  bool certain = true;  // false: under a condition
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::map<std::string, ShellWord> variables;  // as they are at the end
  std::map<std::string, std::string> files;    // that it writes from text of its own, by name
  std::vector<Said> batch;                     // "#SBATCH --nodes=16": name "--nodes", value "16"
};

}  // namespace orrery
