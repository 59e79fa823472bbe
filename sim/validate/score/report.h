// SPDX-License-Identifier: Apache-2.0
// Scores and shows predictions of measured runs: per row, per group and over all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/engine/step/result.h"
#include "sim/outcome/model_error.h"
#include "sim/validate/rows/rows.h"

namespace orrery {

struct RowPrediction {
  bool made = false;
  double step_seconds = 0;
  double tokens_per_second_per_gpu = 0;
  RunKind run;
  double low_tokens = 0, high_tokens = 0;  // 90% range
  PredictionRange range;                   // of the step time, and what it is made of
  PredictionRange stated;                  // the same of the values' stated ranges alone
  double peak_gibibytes = 0, reserved_gibibytes = 0, static_gibibytes = 0;
  bool out_of_memory = false;
  StageBreakdown stage;    // of the stage that paces the step
  std::string bottleneck;  // the largest label
  std::vector<Extrapolation> extrapolations;
};

// A row with its prediction and what is scored of it.
struct ScoredRow {
  const PreparedRow* row = nullptr;
  RowPrediction prediction;
  // predicted / measured - 1
  std::optional<double> speed_error, peak_error, reserved_error, static_error;
};
ScoredRow score_row(const PreparedRow& row, const RowPrediction& prediction);
// The speed of a training run whose whole layout is known.
bool is_scored(const ScoredRow& scored);

struct GroupScore {
  std::string source, gpu;
  int rows = 0, predicted = 0;
  std::map<std::string, int> skipped;  // reason: rows
  std::vector<double> speed, peak, reserved, static_memory;
  std::vector<double> ordinary_speed;  // without rows that are known to be odd
  // Verdicts on rows whose source says whether they ran out of memory.
  int oom_found = 0, oom_missed = 0, oom_false = 0, fit_found = 0;
};
// Rows with a whole layout on a catalogued accelerator, and how many of them are not predicted.
struct SkippedShare {
  int rows = 0, skipped = 0;
  double share() const { return rows == 0 ? 0 : static_cast<double>(skipped) / rows; }
};
SkippedShare skipped_share(const std::vector<ScoredRow>& rows);
void add_row(GroupScore& group, const ScoredRow& row);

// Per source and GPU, in the order in which they first appear.
std::vector<GroupScore> group_rows(const std::vector<ScoredRow>& rows);
// All, published, experts, 1,024 GPUs and more, and rows whose layout is not wholly known.
std::vector<GroupScore> overall_groups(const std::vector<ScoredRow>& rows);

struct GroupNumbers {
  double median = 0, p90 = 0, bias = 0;  // of |error|, |error| and error
};
std::optional<GroupNumbers> numbers(const std::vector<double>& errors);
// Of a group's speeds: odd rows count for the median and the bias, not for the 90th percentile.
std::optional<GroupNumbers> speed_numbers(const GroupScore& group);
// The same for --json, with the number of rows; null where there are none.
Json numbers_json(const std::vector<double>& errors);

std::string report_text(const std::vector<ScoredRow>& rows, bool each_row);

// How a group does as shipped, and when the step-level values are fitted without it.
struct LeftOut {
  std::string group;
  int rows = 0;
  std::vector<double> shipped, without;  // errors of its rows
  bool subtotal = false;                 // its rows are in other groups too
};
std::string left_out_text(const std::vector<LeftOut>& groups, const std::string& kind);

}  // namespace orrery
