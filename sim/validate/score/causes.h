// SPDX-License-Identifier: Apache-2.0
// Knows which rows are predicted worst, and what the errors of others say about why.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/score/report.h"

namespace orrery {

struct WorstRow {
  const ScoredRow* row = nullptr;
  std::string breakdown;  // the largest parts of the pacing stage, as shares
  std::string cause;      // sentences; says so where nothing points anywhere
};

// The `count` rows with the largest errors of speed (of speeds' ratio: half and double are alike)
// whose layout is wholly told and that are not known to be odd, at most `of_source` of one source.
// Rules behind `cause`, each said with its numbers: what the row shares with others that are off
// the same way (release, GPU, model, precision, cluster, experts, ...); whose share of the step
// rises with the error among rows of its source; by how much its largest part would have to change.
std::vector<WorstRow> worst_rows(const std::vector<ScoredRow>& rows, std::size_t count,
                                 std::size_t of_source);
std::string worst_text(const std::vector<WorstRow>& rows);

// "gemm 45%, attention 20%, ..." of the stage that paces the step.
std::string shares_text(const StageBreakdown& stage, int count);

}  // namespace orrery
