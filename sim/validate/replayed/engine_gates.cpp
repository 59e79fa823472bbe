// SPDX-License-Identifier: Apache-2.0
// Replays the shipped tables of the serving engine for gates.
#include "sim/validate/replayed/engine_gates.h"

#include <algorithm>
#include <filesystem>

#include "hw_models/catalog.h"

namespace orrery {

std::vector<EngineCase> shipped_engine_cases() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(data_root() / "validation/measurements/serving_engine"))
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<EngineCase> cases;
  for (const auto& file : files) {
    std::vector<EngineCase> some = read_engine_cases(read_csv(file));
    std::move(some.begin(), some.end(), std::back_inserter(cases));
  }
  return cases;
}

std::vector<GroupFigures> engine_gate_figures(const std::vector<EngineFigure>& figures) {
  std::vector<GroupFigures> groups;
  for (const char* half : {"fitted", "held"}) {
    GroupFigures group{.group = std::string("our engine, ") + half};
    for (const EngineErrors& e : engine_errors(figures)) {
      if (e.name != std::string("all ") + half) continue;
      group.rows += e.rows;
      group.figures[e.quantity == "oom" ? "oom_wrong" : e.quantity + "_median"] = e.median;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace orrery
