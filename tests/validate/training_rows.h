// SPDX-License-Identifier: Apache-2.0
// Reads the measured training runs that ship with the project.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/validate/rows/rows.h"
#include "sim/validate/rows/step_table.h"
#include "sim/validate/rows/training_columns.h"

namespace orrery::test {

// Of validation/measurements/`part`, file by file in the order of their names; the reader owns
// their clusters.
inline std::vector<PreparedRow> training_rows(RowReader& reader, const std::string& part) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(data_root() / "validation/measurements" / part))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const Aliases aliases = load_aliases(data_root() / "validation/aliases.json");
  std::vector<PreparedRow> rows;
  for (const auto& file : files) {
    CsvTable table = read_csv(file);
    if (is_step_table(table)) table = training_runs_of(table, aliases);
    if (!is_training_table(table)) continue;
    for (PreparedRow& row : reader.read_training(table)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace orrery::test
