// Answers questions about programs that do not run on a machine.
#include "sim/app/refusal.h"

#include <fmt/format.h>

#include "sim/app/report_parts.h"
#include "sim/app/result.h"
#include "sim/outcome/verdict.h"

namespace orrery {
namespace {

std::string json_text(const Scenario& s, const Verdict& verdict) {
  const nlohmann::ordered_json out = {{"model", s.model.name},
                                      {"cluster", s.cluster.name},
                                      {"accelerator", s.cluster.device.name},
                                      {"gpus", s.cluster.gpus},
                                      {"stack", s.stack.name + "@" + s.stack.release},
                                      {"task", to_text(s.job.task)},
                                      {"verdict", verdict_json(verdict)},
                                      {"prediction", nullptr}};
  return out.dump(2) + "\n";
}

std::string page_text(const Scenario& s, const Verdict& verdict, const CommonFlags& common) {
  if (common.json) return json_text(s, verdict);
  Document document;
  add_subject(document, s);
  document.gap().paragraph("It does not run: " + verdict.why + ".");
  return page(document, common);
}

}  // namespace

std::optional<std::string> refusal(const Scenario& s, const CommonFlags& common) {
  const Verdict verdict = program_verdict(s.stack, s.cluster.device, s.layout.precision);
  if (verdict.runs) return std::nullopt;
  return page_text(s, verdict, common);
}

std::optional<std::string> refusal(const Question& q, const CommonFlags& common) {
  for (const PrecisionRecipe precision : q.precisions) {
    Scenario asked{.cluster = q.cluster, .model = q.model, .job = q.job};
    asked.layout.precision = precision;
    asked.stack = catalogue_stack(q.stack_name, q.cluster, q.model, q.job, precision);
    if (auto text = refusal(asked, common)) return text;
  }
  return std::nullopt;
}

}  // namespace orrery
