// SPDX-License-Identifier: Apache-2.0
// Knows which command of a script starts a program, and what that program is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/launch/read/program_facts.h"
#include "sim/launch/source/said.h"

namespace orrery {

// A command, its words apart by who reads them.
struct StartedCommand {
  std::optional<GivenProgram> program;  // none: a file that it names says it
  std::vector<Said> said;               // to the program
  std::vector<Said> launcher;           // before the program's own words
  int score = 0;                        // settings of the program that were seen
};

// The command with the most settings of a program that is known; nullopt: there is none. `others`:
// how many more start the same program.
std::optional<StartedCommand> started_command(const ShellScript& script, const std::string& file,
                                              int& others);

// Flags and overrides as names and values; positional words have no name.
std::vector<Said> said_of_words(const std::vector<ShellWord>& words, std::size_t from,
                                std::size_t to, const std::string& file);

// The program that has settings of these names, and how many were seen.
struct Recognised {
  GivenProgram program = GivenProgram::megatron_lm;
  int score = 0;
};
std::optional<Recognised> program_of(const std::vector<Said>& said);

// The release that words of a script name ("vllm/vllm-openai:v0.11.0", "vllm==0.11"), as "0.11";
// empty: none.
std::string named_release(const ShellScript& script, GivenProgram program);

}  // namespace orrery
