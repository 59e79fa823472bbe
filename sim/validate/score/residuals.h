// SPDX-License-Identifier: Apache-2.0
// Knows how errors of speed spread over scale, batch, sequence, GPU, release and precision.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/score/report.h"

namespace orrery {

// Rows of one bin of a quantity, in the order of its table.
struct ResidualBin {
  std::string label;
  std::vector<double> errors;  // predicted / measured - 1 of the speed
};
struct ResidualTable {
  std::string quantity;  // "GPUs", "global batch", ...
  std::vector<ResidualBin> bins;
};

// Of the rows whose layout is wholly told and whose speed is scored; sweeps or published ones.
std::vector<ResidualTable> residual_tables(const std::vector<ScoredRow>& rows, bool sweeps);
std::string residuals_text(const std::vector<ResidualTable>& tables);

}  // namespace orrery
