// SPDX-License-Identifier: Apache-2.0
// Sums a stage's labels and finds the stage that paces the others.
#include "sim/engine/step/result.h"

#include <algorithm>

namespace orrery {

std::int64_t pacing_stage(const std::vector<StageBreakdown>& stages) {
  const auto least = std::min_element(
      stages.begin(), stages.end(),
      [](const auto& a, const auto& b) { return a[Label::bubble] < b[Label::bubble]; });
  return least - stages.begin();
}

Ticks StageBreakdown::total() const {
  Ticks sum;
  for (Ticks t : label) sum += t;
  return sum;
}

}  // namespace orrery
