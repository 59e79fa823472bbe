// SPDX-License-Identifier: Apache-2.0
// Replays the shipped tables of the serving engine for gates.
#include "sim/validate/replayed/engine_gates.h"

#include <utility>

#include "hw_models/catalog.h"
#include "sim/base/append.h"

namespace orrery {

std::vector<EngineCase> shipped_engine_cases() {
  std::vector<EngineCase> cases;
  for (const auto& file : csv_files(data_root() / "validation/measurements/serving_engine"))
    append(cases, read_engine_cases(read_csv(file)));
  return cases;
}

std::vector<GroupFigures> engine_gate_figures(const std::vector<EngineFigure>& figures) {
  const std::vector<EngineErrors> errors = engine_errors(figures);
  const std::pair<const char*, const char*> names[] = {
      {"our engine, fitted", "all fitted"},
      {"our engine, held", "all held"},
      {"our engine on several GPUs, fitted", "several GPUs, fitted"},
      {"our engine on several GPUs, held", "several GPUs, held"}};
  std::vector<GroupFigures> groups;
  for (const auto& [name, of] : names) {
    GroupFigures group{.group = name};
    for (const EngineErrors& e : errors) {
      if (e.name != of) continue;
      group.rows += e.rows;
      group.figures[e.quantity == "oom" ? "oom_wrong" : e.quantity + "_median"] = e.median;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace orrery
