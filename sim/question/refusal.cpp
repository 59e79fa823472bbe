// SPDX-License-Identifier: Apache-2.0
// Finds out whether programs run on a machine.
#include "sim/question/refusal.h"

namespace orrery {

std::optional<Refusal> refusal(const Scenario& s) {
  const Verdict verdict = program_verdict(s.stack, s.cluster.device, s.layout.precision);
  if (verdict.runs) return std::nullopt;
  return Refusal{.asked = s, .verdict = verdict};
}

std::optional<Refusal> refusal(const Question& q) {
  for (const PrecisionRecipe precision : q.precisions) {
    Scenario asked{.cluster = q.cluster, .model = q.model, .job = q.job};
    asked.layout.precision = precision;
    asked.stack = catalogue_stack(q.stack_name, q.cluster, q.model, q.job, precision);
    if (auto refused = refusal(asked)) return refused;
  }
  return std::nullopt;
}

}  // namespace orrery
