// SPDX-License-Identifier: Apache-2.0
// Asks whether what was fitted to one kind of run holds for another: pipelines, wide tensor
// parallelism, narrow formats, large models, a new generation, a program without a stack.
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
// The names of the last lines: of unscripted_rows(), of other_values_rows(), of stand_in_rows().
inline constexpr const char* unscripted_transfer = "a model that no script names";
inline constexpr const char* values_transfer = "values of a stand-in";
inline constexpr const char* stand_in_transfer = "a program by its stand-in";

// Those of `rows` (read with Unknown::script) that are predicted otherwise than the same in
// `scripted` (read with Unknown::model), by fits that saw neither their family nor their source.
std::vector<BlindRow> unscripted_rows(FoldFits& nested, const std::vector<ScoredRow>& rows,
                                      const std::vector<ScoredRow>& scripted, const FitRun& run);

// Those of `rows` whose program another stack stands in for (read with Unknown::program, in the
// order of the rows that fits learn from), by fits of that stack that saw neither their family nor
// their source.
std::vector<BlindRow> stand_in_rows(FoldFits& nested, const std::vector<ScoredRow>& rows,
                                    const FitRun& run);

// The rows that stand_in_rows() has, with the settings of their own program (`own`, read with
// Unknown::model) and the values of the other stack: a program that was read, and never measured.
std::vector<BlindRow> other_values_rows(FoldFits& nested, const std::vector<ScoredRow>& rows,
                                        const std::vector<ScoredRow>& own, const FitRun& run);

// Both, which ranges are made of.
std::vector<BlindRow> joined(std::vector<BlindRow> left_out, const std::vector<BlindRow>& more);

// `left_out`: the same rows as nested errors have them; `unscripted`, `other_values` and
// `stand_ins`: of the functions above, the last kinds. Kinds without a row are left out.
std::vector<TransferLine> transfer_lines(const std::vector<ScoredRow>& rows,
                                         const std::vector<BlindRow>& left_out,
                                         const std::vector<BlindRow>& unscripted,
                                         const std::vector<BlindRow>& other_values,
                                         const std::vector<BlindRow>& stand_ins,
                                         const ModelError& shared, const FitRun& run);

}  // namespace orrery
