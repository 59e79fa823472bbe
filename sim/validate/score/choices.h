// SPDX-License-Identifier: Apache-2.0
// Knows what the layout that a prediction puts first loses where published runs tried several.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/score/ranking.h"

namespace orrery {

// Scored rows of one job in one precision and release, of sources that are no sweep and tell the
// whole layout, in the order in which they first appear.
std::vector<std::vector<const ScoredRow*>> published_jobs(const std::vector<ScoredRow>& rows);

// Layouts of one job in one precision and release, of a source that is no sweep: what an advisor
// that knew only these would choose, against the best of them as measured.
struct PublishedChoice {
  std::string source, gpu, model;
  std::int64_t gpus = 0, global_batch = 0, sequence = 0;
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  std::vector<RankedLayout> layouts;
  std::vector<std::string> texts;  // of the layouts
  OrderScore ranking;
  // The predicted gain of the first over the measured best, as a ratio less one: within the spread
  // between runs the prediction cannot tell them apart.
  double predicted_gain = 0;
};
// In the order in which they first appear; of two layouts and more.
std::vector<PublishedChoice> published_choices(const std::vector<ScoredRow>& rows);

// A line for each that loses more than runs differ by, and counts of the others; empty without any.
std::string choices_text(const std::vector<ScoredRow>& rows);

}  // namespace orrery
