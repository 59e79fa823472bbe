// SPDX-License-Identifier: Apache-2.0
// Judges whether a plan's question can be met.
#include <algorithm>

#include "sim/plan/plan.h"

namespace orrery {

Verdict verdict_of(const PlanResult& result) {
  const auto any = [&](auto&& holds) {
    return std::any_of(result.points.begin(), result.points.end(), holds);
  };
  // Also where points meet all limits and which is the least is not known.
  if (result.best || any([](const PlanPoint& p) { return p.feasible; })) return {};
  const bool some = any([](const PlanPoint& p) { return p.step.fits; });
  return {.fits = false,
          .runs = any([](const PlanPoint& p) { return p.step.runs; }),
          .why = some || result.points.empty() ? "no point meets all limits"
                                               : result.points.front().step.why_not,
          .probability = 0};
}

std::optional<std::size_t> detailed_point(const PlanResult& result) {
  if (result.best) return result.best;
  std::optional<std::size_t> nearest;
  for (std::size_t i = 0; i < result.points.size(); ++i)
    if (result.points[i].step.fits &&
        (!nearest || misses_less(result.points[i], result.points[*nearest])))
      nearest = i;
  return nearest;
}

}  // namespace orrery
