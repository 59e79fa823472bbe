// SPDX-License-Identifier: Apache-2.0
// Knows how ranges of predictions are held against measured runs, and where the model's error goes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/app/validate_fit.h"
#include "sim/base/json_tree.h"
#include "sim/calibrate/error_fit.h"

namespace orrery {

// How the 90% ranges of a group of rows do.
struct RangeGroup {
  std::string source, gpu;  // empty: all
  int rows = 0, covered = 0;
  std::vector<double> widths, errors;  // shares of the predicted speed; |predicted / measured - 1|
  int covered_by_others = -1;          // by the errors of other sources alone; -1: not asked
};
// Rows of training runs whose speed is scored and that do not stand outside (odd_rows.json), by
// source and GPU in the order in which they appear, then all, published ones, sweeps and models
// with experts.
std::vector<RangeGroup> range_groups(const std::vector<ScoredRow>& rows);
// Rows, share covered, median width and what it is of the group's median error, and the error's
// 90th percentile over that median; marks where the share is outside of 85 to 95% in a group of
// twenty rows and more.
std::string ranges_text(const std::vector<RangeGroup>& groups);
Json ranges_json(const std::vector<RangeGroup>& groups);

// What --leave-out prints. "blind" also says which rule each source got and how ranges do that are
// made of the errors of these rows, or of other sources' rows alone; with options.model_error it
// writes them to that file, collectives and memory as in `error`. Errors of rows of which something
// odd is known make no range.
std::string left_out_report(const std::vector<ScoredRow>& rows, const ModelError& error,
                            const ValidateOptions& options);

std::vector<BlindResidual> blind_residuals(const std::vector<BlindRow>& rows);

}  // namespace orrery
