// SPDX-License-Identifier: Apache-2.0
// Knows how tests ask for the flags of small layouts, and how they look into them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/launch/flags.h"
#include "tests/advise/small_question.h"

namespace orrery {

inline Stack stack_of(const char* name, const Layout& layout = {}, bool moe = false) {
  return load_stack(name, {.architecture = "hopper", .precision = layout.precision, .moe = moe},
                    data_root() / "workloads/catalog/stacks");
}

inline LaunchFlags flags_of(const char* stack, const Layout& layout, bool moe = false) {
  const Model model = moe ? small_expert_model() : small_dense_model();
  return launch_flags(layout, model, small_job(4096, 256), stack_of(stack, layout, moe));
}

inline LaunchFlags flags_on(const char* device, Architecture architecture, const char* stack_name,
                            const Layout& layout, const Model& model, Task task = Task::pretrain) {
  const Stack stack = load_stack(stack_name,
                                 {.architecture = std::string(to_text(architecture)),
                                  .device = device,
                                  .model = model.name,
                                  .family = model.family,
                                  .precision = layout.precision,
                                  .moe = model.has_experts(),
                                  .task = task},
                                 data_root() / "workloads/catalog/stacks");
  Job job = small_job(4096, 256);
  job.task = task;
  return launch_flags(layout, model, job, stack, launch_device(load_device(device)));
}

// Part of a sentence of the notes.
inline bool notes(const std::vector<FlagNote>& all, const std::string& part) {
  return std::any_of(all.begin(), all.end(),
                     [&](const FlagNote& n) { return n.sentence.find(part) != std::string::npos; });
}

inline bool says(const LaunchFlags& f, const std::string& name, const std::string& value) {
  return std::any_of(f.flags.begin(), f.flags.end(), [&](const LaunchFlag& flag) {
    return flag.name == name && flag.value == value;
  });
}
inline bool lacks(const LaunchFlags& f, const std::string& key) {
  return std::any_of(f.missing.begin(), f.missing.end(),
                     [&](const FlagNote& m) { return m.key == key; });
}
inline bool mentions(const LaunchFlags& f, const std::string& key) {
  return lacks(f, key) ||
         std::any_of(f.implied.begin(), f.implied.end(),
                     [&](const FlagNote& m) { return m.key == key; }) ||
         std::any_of(f.flags.begin(), f.flags.end(),
                     [&](const LaunchFlag& flag) { return flag.key == key; });
}

}  // namespace orrery
