// SPDX-License-Identifier: Apache-2.0
// Knows the error on runs never seen: each family of models and source predicted by fits that saw
// neither the family nor the source.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/steps/error_fit.h"
#include "sim/validate/fit/fit.h"

namespace orrery {

// One measured operating point: runs of one source that differ in nothing but their size, their
// batch and chance. They err together, and count once.
struct NestedPoint {
  std::string family, source, generation, precision;
  bool sweep = false, experts = false, outside = false;
  std::int64_t most_gpus = 0;
  int rows = 0;
  double log_error = 0;  // of predicted over measured speed: the median of its rows
  double covered = 0;    // share of its rows inside of their 90% ranges
  double width = 0;      // of the range, as a logarithm: the median of its rows
  double score = 0;      // interval score of the range, as a logarithm: the mean of its rows
};

// What tells operating points of a source apart, as a text.
std::string operating_point(const PreparedRow& row);

// The model's error by rows of predict_blind(.., "nested", ..), one vote for each family of a
// source, and rows of stand_in_rows(); where a stack's family was measured by `blind`, which left
// out runs alone. Collectives and memory as in `shipped`.
ModelError nested_error(const std::vector<BlindRow>& rows, const std::vector<BlindRow>& blind,
                        const ModelError& shipped, int threads);

// The range of a row is made of the errors of those rows of `evidence` that share neither its
// family nor its source; `shared` gives what all regions have in common.
std::vector<NestedPoint> nested_points(const std::vector<BlindRow>& rows,
                                       const std::vector<BlindRow>& evidence,
                                       const ModelError& shared);

// What a family of one source says, by its points.
struct NestedGroup {
  std::string family, source;
  int points = 0, rows = 0;
  double error = 0;    // median over points of |predicted / measured - 1|
  double bias = 0;     // median over points of predicted / measured - 1
  double covered = 0;  // mean over points
  double width = 0;    // median over points, over the group's median error
  double score = 0;    // mean over points
};
std::vector<NestedGroup> nested_groups(const std::vector<const NestedPoint*>& points);

// What many groups say: one vote for each.
struct NestedNumbers {
  int groups = 0, points = 0, rows = 0;
  double median = 0, p90 = 0;              // over groups
  double point_median = 0, point_p90 = 0;  // over points
  double bias = 0, bias_error = 0;         // mean over groups and its standard error
  double covered = 0;                      // mean over groups
  double width = 0;                        // median over groups
  double score = 0;                        // mean over groups
};
NestedNumbers nested_numbers(const std::vector<const NestedPoint*>& points);

// The error that these residuals have, one vote a cell, as ranges of new runs; `shared` where there
// are none.
ModelError error_of_others(const std::vector<BlindResidual>& others, const ModelError& shared);

// Some of the points, by a name: all published, generations, experts, large jobs, sweeps, then each
// generation and precision of published runs.
struct NestedSet {
  std::string name;
  std::vector<const NestedPoint*> points;
};
std::vector<NestedSet> nested_sets(const std::vector<NestedPoint>& points);

}  // namespace orrery
