// SPDX-License-Identifier: Apache-2.0
// Knows how tests ask for launch scripts, and how they look into them.
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include "hw_models/catalog.h"
#include "sim/launch/script/script.h"
#include "workloads/model/model_catalog.h"

namespace orrery::test {

inline Model model_of(const std::string& name) {
  return load_model(name, data_root() / "workloads/catalog/models");
}

// A pretraining scenario; `dp` of the layout follows from the other sizes.
inline Scenario scenario_of(const std::string& stack, const std::string& cluster, std::int64_t gpus,
                            const Model& model, Layout layout, std::int64_t sequence = 4096,
                            std::int64_t batch = 1024) {
  Scenario s{.cluster = load_cluster(cluster, gpus)};
  s.model = model;
  s.job.sequence = sequence;
  s.job.global_batch = batch;
  layout.dp = gpus / (layout.tp * layout.pp * layout.cp);
  s.layout = layout;
  s.stack = catalogue_stack(stack, s.cluster, s.model, s.job, layout.precision);
  return s;
}

inline ScriptNote note_of() {
  return {.made_by = "orrery 0",
          .step_time = Seconds(12.5),
          .low = Seconds(11),
          .high = Seconds(14),
          .tokens_per_second_per_gpu = 432.1};
}
inline std::string slurm_of(const Scenario& s) {
  return slurm_script(s, launch_flags(s), note_of());
}
inline std::string kubernetes_of(const Scenario& s) {
  return kubernetes_manifest(s, launch_flags(s), note_of());
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Variables that a script reads without a word on what they are where they are not set.
inline std::set<std::string> unset_variables(const std::string& script) {
  const auto is_name = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
  std::set<std::string> used;
  for (std::size_t at = script.find('$'); at != std::string::npos; at = script.find('$', at + 1)) {
    std::size_t from = at + 1;
    if (from < script.size() && script[from] == '{') ++from;
    std::size_t to = from;
    while (to < script.size() && is_name(script[to])) ++to;
    if (to == from) continue;
    const std::string name = script.substr(from, to - from);
    // With a default, or with a sentence.
    if (to < script.size() && script[to] == ':') continue;
    used.insert(name);
  }
  std::set<std::string> unset;
  for (const std::string& name : used) {
    const bool by_scheduler = name.starts_with("SLURM_") || name == "JOB_COMPLETION_INDEX";
    const bool said = holds(script, "${" + name + ":?set " + name + " to ") ||
                      holds(script, "${" + name + ":-") || holds(script, "${" + name + ":+") ||
                      holds(script, "\n" + name + "=") || holds(script, " " + name + "=");
    if (!by_scheduler && !said && name != "PWD" && name != "PYTHONPATH") unset.insert(name);
  }
  return unset;
}

}  // namespace orrery::test
