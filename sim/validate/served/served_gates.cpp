// SPDX-License-Identifier: Apache-2.0
// Serves the rows of the shipped tables for gates.
#include "sim/validate/served/served_gates.h"

#include <algorithm>
#include <cmath>

#include "hw_models/catalog.h"
#include "sim/base/statistics.h"
#include "sim/base/text/csv.h"
#include "sim/validate/serving/serving_rows.h"

namespace orrery {

std::vector<ServingRow> shipped_serving_rows(const Aliases& aliases) {
  std::vector<CsvTable> tables;
  for (const auto& file : csv_files(data_root() / "validation/measurements/serving"))
    tables.push_back(read_csv(file));
  return ServingReader(aliases).read(tables);
}

std::vector<GroupFigures> served_gate_figures(const std::vector<ServedRow>& rows) {
  std::vector<GroupFigures> groups;
  for (const bool guessed : {false, true}) {
    GroupFigures group{.group = guessed ? "served runs, guessed tokens" : "served runs"};
    for (const ServedQuantity quantity : served_quantities) {
      std::vector<double> errors;
      for (const ServedRow& s : rows) {
        const auto value = measured(s, quantity);
        if (s.skipped.empty() && guesses(*s.row) == guessed && value)
          errors.push_back(std::abs(predicted(s, quantity) / *value - 1));
      }
      if (errors.empty()) continue;
      const std::string name(served_quantity_text[quantity]);
      group.rows = std::max(group.rows, static_cast<int>(errors.size()));
      group.figures[name + "_median"] = median(errors);
      group.figures[name + "_p90"] = percentile(errors, 90);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace orrery
