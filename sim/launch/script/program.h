// SPDX-License-Identifier: Apache-2.0
// Knows how a program is started with a layout: its settings, its shape, and what its user must
// say.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/scenario.h"
#include "sim/launch/flags.h"
#include "sim/launch/script/host_plan.h"

namespace orrery {

// A value that only the user knows: a variable of the shell.
struct ReaderValue {
  std::string name;     // "DATA_PATH"
  std::string meaning;  // ends the sentence "set DATA_PATH to ...", without quotes or braces
  bool data = false;    // needless where MOCK_DATA is 1
};

inline const ReaderValue train_steps{"TRAIN_STEPS", "the number of steps to train"};

// Shell text of one program. It finds the arguments of the script in "$@", the file of settings in
// "$LAYOUT_FILE", and a folder that all hosts share in "$RUN_DIR".
struct LaunchProgram {
  std::vector<ReaderValue> needs;
  bool mocks = false;                // MOCK_DATA=1 runs it on random tokens
  std::string file_name;             // "layout.toml"; empty: it reads none
  std::string file;                  // what stands in it
  std::string train;                 // fills the array `train`: what is started
  bool torchrun = true;              // else one process a host, which JAX joins
  std::vector<std::string> left;     // sentences: what the script does not do
  std::vector<std::string> sources;  // ids of hw_models/catalog/sources, beside those of the flags
};

// Why there is no script for a stack's program, in words that follow "found"; empty: there is one.
std::string no_script_reason(const Stack& stack, const Job& job);

// The stack is one that no_script_reason leaves.
LaunchProgram launch_program(const Scenario& scenario, const LaunchFlags& flags,
                             const HostPlan& plan);

// Programs, by the stack's launcher.
LaunchProgram megatron_program(const Scenario&, const LaunchFlags&);
LaunchProgram bridge_program(const Scenario&, const LaunchFlags&);
LaunchProgram nemo2_program(const Scenario&, const LaunchFlags&, const HostPlan&);
LaunchProgram torchtitan_program(const Scenario&, const LaunchFlags&);
LaunchProgram deepspeed_program(const Scenario&, const LaunchFlags&);
LaunchProgram maxtext_program(const Scenario&, const LaunchFlags&, const HostPlan&);

// An array of the shell, an item a line: "train=(\n  a\n  b\n)\n". Items are shell text.
std::string shell_array(const std::string& name, const std::vector<std::string>& items);
// One word of the shell: quoted where it has to be.
std::string quoted_word(const std::string& text);
// A flag as an item: "--tensor-model-parallel-size 8". Its value is shell text already.
std::string flag_item(const LaunchFlag& flag);
// A value without the quotes that a shell would take away.
std::string bare_value(const std::string& value);

}  // namespace orrery
