// SPDX-License-Identifier: Apache-2.0
// Finds the summary of an answer's command.
#include "sim/app/page/summary.h"

namespace orrery {

std::string time_text(double seconds) { return to_text(Seconds(seconds)); }

Document said(const std::string& words) {
  Document document(true);
  document.paragraph(words);
  return document;
}

Summary summary_of(const JsonValue& answer) {
  const std::string name = answer.at("orrery").at("command").text();
  if (name == "simulate") return step_summary(answer);
  if (name == "advise") return advice_summary(answer);
  if (name == "plan") return plan_summary(answer);
  if (name == "serve") return service_summary(answer);
  if (name == "schedule") return fleet_summary(answer);
  if (name == "topology") return network_summary(answer);
  if (name == "validate") return validation_summary(answer);
  return {.title = "orrery " + name, .good = std::nullopt, .verdict = ""};
}

}  // namespace orrery
