// SPDX-License-Identifier: Apache-2.0
// Says what a table of training runs lacks, all of it at once.
#include "sim/validate/rows/training_columns.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

bool tells(const CsvTable& table, const NeededColumns& needed) {
  return std::any_of(needed.any_of.begin(), needed.any_of.end(),
                     [&table](const std::string& column) { return table.has(column); });
}

}  // namespace

const std::vector<NeededColumns>& training_columns() {
  static const std::vector<NeededColumns> needed = {
      {"the model", {"model"}},
      {"the machine", {"gpu", "cluster"}},
      {"the accelerators", {"n_gpus", "gpus", "dp"}},
      {"the sequence", {"seq"}},
      {"the layout", {"tp", "pp", "dp", "zero_stage"}},
      {"a figure",
       {"tokens_s_gpu", "step_time_s", "peak_memory_gib", "reserved_memory_gib",
        "static_memory_gib", "oom"}}};
  return needed;
}

bool is_training_table(const CsvTable& table) {
  const auto& needed = training_columns();
  const auto told = std::count_if(needed.begin(), needed.end(),
                                  [&](const NeededColumns& n) { return tells(table, n); });
  return table.has("model") && static_cast<std::size_t>(told) * 2 >= needed.size();
}

void require_training_columns(const CsvTable& table) {
  std::string lacking, nearest;
  for (const NeededColumns& needed : training_columns()) {
    if (tells(table, needed)) continue;
    lacking += fmt::format("{}{} ({})", lacking.empty() ? "" : ", ", needed.what,
                           joined(needed.any_of, " or "));
    for (const std::string& column : needed.any_of)
      if (nearest.empty()) nearest = nearest_name(column, table.header);
  }
  if (lacking.empty()) return;
  throw Error({.file = table.file,
               .path = "line 1",
               .found = "no column for " + lacking,
               .expected = "a training table, which tells at least these",
               .nearest = nearest});
}

}  // namespace orrery
