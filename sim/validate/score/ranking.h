// SPDX-License-Identifier: Apache-2.0
// Measures how well predictions order the layouts of one job, and what the first choice loses.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/outcome/noise.h"
#include "sim/validate/score/report.h"

namespace orrery {

// Groups of fewer layouts say little about an order.
inline constexpr std::size_t ranked_rows = 6;

// A layout's measured and predicted figure, higher is better (tokens/s/GPU).
struct RankedLayout {
  std::string id;
  double predicted = 0, measured = 0;
};

// How well an order agrees with what was measured. A pair of layouts whose measured figures differ
// by at most rerun_spread is a tie, and counts neither for nor against.
struct OrderScore {
  // Spearman's correlation with such ties: a layout's measured rank is the number of layouts that
  // it beats and half of those that it ties with; its predicted rank counts ties of the measurement
  // in the same way and all others by the prediction. 1: every pair that is no tie is in order;
  // equal predictions of such a pair count half. 1 too where all layouts tie.
  double correlation = 1;
  // Pairs that are no ties, and those of them that are in order (equal predictions: half of one).
  double pairs = 0, in_order = 0;
  // What is lost by running the layout that is predicted to be fastest: 1 - its measured figure
  // over the best measured one. Not rounded to 0 within the spread. Of equal predictions the first.
  double loss = 0;
  std::string first, best;  // ids: predicted, and measured to be fastest
};
// At least one layout; all figures above 0.
OrderScore rank_layouts(const std::vector<RankedLayout>& layouts);

// The layouts of one job on one number of accelerators, as one source measured them. Models of one
// name but another shape (layers, hidden, heads, FFN) are other jobs.
struct RankedGroup {
  std::string source, gpu, model;
  std::int64_t gpus = 0, global_batch = 0, sequence = 0;
  std::size_t rows = 0;
  OrderScore ranking;
};

// Every group of at least ranked_rows rows whose speed is scored and whose layout is wholly told,
// in the order in which they first appear. Rows that are known to be odd are left out.
std::vector<RankedGroup> rank_groups(const std::vector<ScoredRow>& rows);

// Of the groups of one source.
struct SourceRanking {
  std::string source;
  std::size_t groups = 0, rows = 0;
  double median_correlation = 0, worst_correlation = 0;
  double in_order = 0;  // share of all pairs that are no ties
  double median_loss = 0, worst_loss = 0;
  const RankedGroup* least_ordered = nullptr;  // the group of worst_correlation
  const RankedGroup* costliest = nullptr;      // of worst_loss
};
// Refers to `groups`.
std::vector<SourceRanking> rank_sources(const std::vector<RankedGroup>& groups);

// A table of sources with the groups that do worst; empty where there are no groups.
std::string ranking_text(const std::vector<ScoredRow>& rows);
// {"spread": .., "sources": [..], "groups": [..]}
Json ranking_json(const std::vector<ScoredRow>& rows);

}  // namespace orrery
