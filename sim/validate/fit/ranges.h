// SPDX-License-Identifier: Apache-2.0
// Knows how ranges of predictions are held against measured runs, by group.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/calibrate/steps/error_fit.h"
#include "sim/validate/fit/fit.h"

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

// The model's error by rows that no fit saw, and how ranges do that are made of it or of other
// sources' rows alone.
struct BlindError {
  ModelError fitted;
  std::vector<RangeGroup> groups;
};
// Errors of rows of which something odd is known make no range; nullopt where all rows are odd.
std::optional<BlindError> blind_error(const std::vector<BlindRow>& rows, int threads);
// Its values in a few lines.
std::string error_text(const ModelError& error);

// Their cells are sources and devices, or families and sources.
enum class ErrorCells : std::uint8_t { devices, families };
std::vector<BlindResidual> blind_residuals(const std::vector<BlindRow>& rows,
                                           ErrorCells cells = ErrorCells::devices);

}  // namespace orrery
