// SPDX-License-Identifier: Apache-2.0
// Answers questions about programs that do not run on a machine.
#include "sim/app/report/refusal.h"

#include "sim/app/report/parts.h"

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

Document refusal_document(const Refusal& r) {
  Document document;
  add_subject(document, r.asked);
  document.gap().paragraph("It does not run: " + r.verdict.why + ".");
  return document;
}

Json refusal_json(const Refusal& r) {
  const Scenario& s = r.asked;
  return {{"model", s.model.name},
          {"cluster", s.cluster.name},
          {"accelerator", s.cluster.device.name},
          {"gpus", s.cluster.gpus},
          {"stack", s.stack.name + "@" + s.stack.release},
          {"task", to_text(s.job.task)},
          {"prediction", nullptr}};
}

Json refused_advice_json(const Refusal& r) {
  const Scenario& s = r.asked;
  return {{"model", s.model.name},
          {"cluster", s.cluster.name},
          {"gpus", s.cluster.gpus},
          {"stack", s.stack.name + "@" + s.stack.release},
          {"best", Json::array()}};
}

}  // namespace orrery
