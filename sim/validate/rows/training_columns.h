// SPDX-License-Identifier: Apache-2.0
// Knows the least that a table of measured training runs has to tell.
#pragma once

#include <string>
#include <vector>

#include "sim/base/text/csv.h"

namespace orrery {

// One thing that a row tells; any of the columns tells it.
struct NeededColumns {
  const char* what;
  std::vector<std::string> any_of;
};
// A model, a machine, its accelerators, the sequence, a layout and a measured figure. Everything
// else is the model's catalogue entry's, the stack's, or usual and said.
const std::vector<NeededColumns>& training_columns();

// Whether a table tells most of it, so that what it lacks is worth naming.
bool is_training_table(const CsvTable& table);
// Error that names everything that the table lacks, and the nearest of its own columns.
void require_training_columns(const CsvTable& table);

}  // namespace orrery
