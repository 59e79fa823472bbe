// SPDX-License-Identifier: Apache-2.0
// Knows how to start a job with a layout: the flags or settings of the stack's own program.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/scenario.h"
#include "workloads/layout/layout.h"
#include "workloads/stack/stack.h"

namespace orrery {

// One flag or setting, in the order in which it is pasted.
struct LaunchFlag {
  std::string name;   // "--tensor-model-parallel-size", "parallelism.tensor_parallel_degree"
  std::string value;  // as it is written there; empty: a switch
  std::string key;    // of layout_keys() that it says; empty: of the job or the stack
};

// A decision for which the program has no flag, or needs none.
struct FlagNote {
  std::string key;       // of layout_keys(); empty: of the stack
  std::string sentence;  // "Megatron-Core 0.15 has no flag for zero 2: ..."
};

struct LaunchFlags {
  std::string program;   // "Megatron-LM (pretrain_gpt.py)"; empty: the stack has none
  std::string language;  // of `text`, for a code fence: "sh", "python", "toml", "yaml", "json"
  std::vector<LaunchFlag> flags;
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::vector<FlagNote> missing;
  std::vector<FlagNote> implied;  // said by leaving a flag out, or by another one
  std::string text;               // ready to paste; a comment says for how many accelerators
  std::string note;               // one sentence: what it leaves to the reader, or why it is empty
  std::vector<std::string> sources;  // ids of hw_models/catalog/sources: where names were read
};

// What the flags are pasted on, as its catalogue entry says. Without a name: nothing is known of
// it.
struct LaunchDevice {
  std::string name = {};  // "gb200": the accelerator's name in the catalogue
  bool deepep = true;     // DeepEP's kernels serve it; HybridEP's serve racks of NVL72 too
  bool one_queue = true;  // collectives beside products want one hardware queue
};
LaunchDevice launch_device(const Device& device);

// Every key of layout_keys() in which the layout differs from Layout() is said by a flag, by the
// number of accelerators or by an entry of `missing` or `implied`, unless it has no effect. Shapes
// of the model, data and learning rates are not part of it. The layout is valid for model and job,
// which trains.
LaunchFlags launch_flags(const Layout& layout, const Model& model, const Job& job,
                         const Stack& stack, const LaunchDevice& device = {});
LaunchFlags launch_flags(const Scenario& scenario);

}  // namespace orrery
