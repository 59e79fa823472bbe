// SPDX-License-Identifier: Apache-2.0
// Knows what the catalogue says of programs whose configurations are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/base/text/enum_names.h"

namespace orrery {

// What a program does where a configuration is silent.
struct ProgramDefault {
  std::string key;  // of a question's settings
  SortedJson value;
  std::string name;  // of the setting that is not there
  std::string releases, source;
};

// Programs whose configurations are read, as the catalogue calls them.
enum class GivenProgram : std::uint8_t {
  primus,
  automodel,
  neuronx,
  nanotron,
  torchtitan,
  nemo1,
  nemo2,
  megatron_bridge,
  maxtext,
  deepspeed,
  trainer,  // Hugging Face's
  trtllm,
  megatron_lm,
  megatron_deepspeed,
  gaudi_script,
  vllm,
  sglang,
};
inline constexpr auto given_program_text = enum_names<GivenProgram>(
    {"primus-experiment", "automodel-recipe", "neuronx-training", "nanotron-configuration",
     "torchtitan", "nemo1-configuration", "nemo2-recipe", "megatron-bridge", "maxtext-keys",
     "deepspeed", "hugging-face-trainer", "trtllm-server", "megatron-lm", "megatron-and-deepspeed",
     "gaudi-script", "vllm-server", "sglang-server"});
constexpr bool is_server(GivenProgram p) {
  return p == GivenProgram::vllm || p == GivenProgram::sglang || p == GivenProgram::trtllm;
}

// By what a program is told apart from others.
struct ProgramSigns {
  GivenProgram program;
  // Words that start it ("-m sglang.launch_server*"), settings that few others have, and what
  // stands before its release where it is installed or its image is named.
  std::vector<std::string> commands, settings, release_words;
};
const std::vector<ProgramSigns>& program_signs();
// * at its begin or end stands for any rest.
bool fits_pattern(std::string_view name, std::string_view pattern);

struct ProgramFacts {
  GivenProgram program;
  std::string title = {};
  std::string stack = {};                  // that predicts it
  std::string stack_without_overlap = {};  // where nothing turns overlap on; empty: the same
  std::vector<ProgramDefault> defaults = {};
  std::vector<std::string> without_effect = {};  // names, with * at their ends
  bool has_no_effect(std::string_view setting) const;
};

// workloads/catalog/launch_programs.json.
ProgramFacts program_facts(GivenProgram program);

// The catalogue's model of that name as programs and recipes write it ("llama3_70b", "meta-llama/
// Meta-Llama-3-70B", "llama3 70B"); nullopt: none.
std::optional<std::string> model_of_name(const std::string& name);

}  // namespace orrery
