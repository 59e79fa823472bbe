// Judges whether a plan's question can be met.
#include <algorithm>

#include "sim/advise/plan.h"

namespace orrery {

Verdict verdict_of(const PlanResult& result) {
  const auto any = [&](auto&& holds) {
    return std::any_of(result.points.begin(), result.points.end(), holds);
  };
  // Also where points meet all limits and which is the least is not known.
  if (result.best || any([](const PlanPoint& p) { return p.feasible; })) return {};
  Verdict verdict{.fits = any([](const PlanPoint& p) { return p.step.fits; }),
                  .runs = any([](const PlanPoint& p) { return p.step.runs; }),
                  .why = "no point meets all limits",
                  .probability = 0};
  if (!verdict.fits && !result.points.empty()) verdict.why = result.points.front().step.why_not;
  return verdict;
}

}  // namespace orrery
