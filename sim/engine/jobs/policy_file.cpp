// SPDX-License-Identifier: Apache-2.0
// Turns rules by name into a policy.
#include "sim/engine/jobs/policy_file.h"

#include "hw_models/catalog.h"

namespace orrery {
namespace {

constexpr const char* folder = "sim/engine/catalog/policies";

}  // namespace

std::vector<std::string> policy_preset_names() { return catalog_names(folder); }

PolicyPreset load_policy_preset(const std::string& name) {
  const JsonValue entry = load_catalog_entry(folder, "policy", name);
  entry.expect_only({"title", "release", "order", "fit", "place", "blocks", "preempts",
                     "preempt_after", "requeue_delay", "requeue_most", "not_modelled"});
  PolicyPreset preset{
      .name = name, .title = entry.at("title").text(), .release = entry.at("release").text()};
  const auto value = [&](const char* key) { return entry.at(key).at("value"); };
  const auto time = [&](const char* key) { return to_fleet_time(value(key).quantity<Seconds>()); };
  preset.rules.order = job_order_text.from(value("order"));
  preset.rules.fit = job_fit_text.from(value("fit"));
  preset.rules.preempts = value("preempts").boolean();
  if (entry.find("place")) preset.rules.place = job_place_text.from(value("place"));
  if (entry.find("blocks")) preset.rules.blocks = value("blocks").boolean();
  if (entry.find("preempt_after")) preset.rules.preempt_after = time("preempt_after");
  if (entry.find("requeue_delay")) preset.rules.requeue.first = time("requeue_delay");
  if (entry.find("requeue_most")) preset.rules.requeue.most = time("requeue_most");
  for (const JsonValue& line : entry.at("not_modelled").items())
    preset.not_modelled.push_back(line.text());
  return preset;
}

}  // namespace orrery
