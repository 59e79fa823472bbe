// SPDX-License-Identifier: Apache-2.0
// Knows how the error of blind predictions becomes the 90% ranges of later ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/outcome/model_error.h"

namespace orrery {

// A measured run that was predicted by a fit which never saw it.
struct BlindResidual {
  RunKind run;
  std::string source;
  std::string cell;      // rows of one cell err together: of a source, and of a device or a family
  std::string twin;      // equal for runs that are alike in every column
  double log_error = 0;  // of measured over predicted step time
  PredictionRange stated;  // of the values' stated ranges alone: parameters and extrapolation
};

struct ErrorFitOptions {
  double coverage = 0.9;
  // A region's quantiles count against its parent's as so many rows that err by themselves.
  double parent_rows = 15;
  double cell_power = 0.5;  // a cell counts as its rows to this power; 0: one vote for each
  int threads = 0;
  // Which regions a run lies in, the narrowest first; as many for all runs.
  std::vector<std::string> (*regions)(const RunKind& run) = error_regions;
  // stated_share, blank, run_to_run and difficulty are taken from here; nullptr: fitted. Regions
  // always are.
  const ModelError* shared = nullptr;
  // Ranges are for runs like those of the residuals, not for new ones: the share of stated ranges
  // is found for them, even where there is `shared`.
  bool like_measured = false;
};

// Quantiles of |log error| beyond what the stated ranges explain, over the scale that the run's
// difficulty gives (slopes common to all, the likeliest ones), each side of its own, for every
// region of error_regions() and over all; with the finite sample's correction, so that the next row
// is covered as often as wanted, and drawn to the wider region where a region has few rows. The two
// sides share the tail so that the range is shortest. Rows count less where their cell has many.
// What is shared by all regions (stated_share, blank) makes ranges shortest among those that hold
// as often as wanted, each source's rows judged by the errors of all others. Runs of stand-ins
// (RunKind::program) and of models that no script names have regions of their own and say nothing
// of others, where there are others. `collectives` and `memory` stay empty. CHECKs that there are
// residuals.
ModelError fit_model_error(std::span<const BlindResidual> residuals,
                           const ErrorFitOptions& options = {});

// Whether the range of a model's error holds a residual, the share of the predicted speed that it
// spans, its length in logarithms, and its interval score: the length, and what it misses by over
// half the tail (Gneiting and Raftery 2007).
struct RangeScore {
  bool covered = false;
  double width = 0;
  double length = 0, score = 0;
};
RangeScore score_range(const BlindResidual& residual, const ModelError& error);

}  // namespace orrery
