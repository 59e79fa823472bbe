// SPDX-License-Identifier: Apache-2.0
// Asks whether what was fitted to one kind of run holds for another: pipelines, wide tensor
// parallelism, narrow formats, large models, a new generation.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/nested/groups.h"

namespace orrery {

// One kind of run, predicted by fits that saw only the other kind.
struct TransferLine {
  std::string name;          // "Blackwell from before"
  NestedNumbers numbers;     // over published groups, as nested errors
  double nested_median = 0;  // nested error of the same runs: median over groups
};

const std::vector<Transfer>& transfer_kinds();

// `left_out`: the same rows as nested errors have them. Kinds without a row are left out.
std::vector<TransferLine> transfer_lines(const std::vector<ScoredRow>& rows,
                                         const std::vector<BlindRow>& left_out,
                                         const ModelError& shared, const FitRun& run);

}  // namespace orrery
