// SPDX-License-Identifier: Apache-2.0
// Reads tables of measured serving runs into rows that can be predicted, or say why not.
#pragma once

#include <vector>

#include "sim/base/text/csv.h"
#include "sim/validate/rows/aliases.h"
#include "sim/validate/serving/serving_catalogue.h"
#include "sim/validate/serving/serving_row.h"
#include "sim/validate/serving/speculation_labels.h"

namespace orrery {

// Whether the table holds serving runs, told by its columns. A table of labels does not.
bool is_serving_table(const CsvTable& table);

// Reads all tables of a question together: rules compare rows of several. Recipes and labels are
// those of validation/serving_recipes.json and
// validation/measurements/serving/speculation_labels.csv.
class ServingReader {
 public:
  explicit ServingReader(Aliases aliases);
  // Every row of every table of serving runs, in their order; other tables are passed over. Error
  // for a missing column and for a cell that is no number or not above 0.
  std::vector<ServingRow> read(const std::vector<CsvTable>& tables);

 private:
  ServingCatalogue catalogue_;
  std::vector<SpeculationLabel> labels_;
};

}  // namespace orrery
