// SPDX-License-Identifier: Apache-2.0
// Writes refusals for people and for machines.
#include "sim/app/report/refusal.h"
#include "sim/base/json/tree.h"

#include "sim/app/report/parts.h"

namespace orrery {

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
