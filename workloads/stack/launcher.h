// SPDX-License-Identifier: Apache-2.0
// Lists the programs by which jobs are started, as stacks name them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/json.h"

namespace orrery {

// Each has settings of its own; which one a release is started with is a key of its stack.
enum class Launcher : std::uint8_t {
  megatron_lm,         // pretrain_gpt.py
  megatron_bridge,     // overrides of a recipe
  nemo2,               // recipes in Python
  nemo1,               // overrides of megatron_gpt_pretraining.py
  megatron_deepspeed,  // pretrain_gpt.py with DeepSpeed's file
  torchtitan,
  automodel,
  nanotron,
  deepspeed,
  primus,          // Megatron-LM's arguments in a YAML file
  maxtext,         // keys over base.yml
  neuronx,         // YAML of NeuronX Distributed Training
  gaudi_megatron,  // environment of examples/llama/pretrain_llama.sh
  scripts,         // of each user's own
  unpublished,
};

std::string_view to_text(Launcher);
Launcher launcher_from(const JsonValue& at);

}  // namespace orrery
