// SPDX-License-Identifier: Apache-2.0
// Reads the catalogue of causes.
#include "sim/diagnose/cause/causes.h"

#include "hw_models/catalog.h"
#include "sim/base/json/json.h"
#include "workloads/stack/launcher.h"

namespace orrery {
namespace {

Cause read_cause(CauseKind kind, const JsonValue& row) {
  row.expect_only({"title", "action", "measure", "prior", "parts", "least", "most", "of_rank",
                   "troubles", "settings"});
  Cause cause{.kind = kind,
              .title = row.at("title").text(),
              .action = row.at("action").text(),
              .measure = row.at("measure").text(),
              .least = row.at("least").number(),
              .most = row.at("most").number(),
              .of_rank = row.at("of_rank").boolean()};
  if (const auto parts = row.find("parts"))
    for (const JsonValue& part : parts->items()) cause.parts.push_back(part.text());
  if (cause.parts.empty() || row.find("prior")) cause.prior = read_share(row.at("prior"));
  if (const auto troubles = row.find("troubles"))
    for (const JsonValue& trouble : troubles->items()) cause.troubles.push_back(trouble.text());
  if (const auto settings = row.find("settings"))
    for (const auto& [launcher, words] : settings->members()) {
      launcher_from(JsonValue::from(launcher, row.file()));
      cause.settings[launcher] = words.text();
    }
  return cause;
}

std::vector<Cause> load_causes() {
  const JsonValue file = JsonValue::load(data_root() / "sim/diagnose/catalog/causes.json");
  file.expect_only(cause_text.names(), "a cause");
  std::vector<Cause> causes;
  for (std::size_t i = 0; i < cause_count; ++i) {
    const auto kind = static_cast<CauseKind>(i);
    causes.push_back(read_cause(kind, file.at(cause_text[kind])));
  }
  return causes;
}

}  // namespace

const std::vector<Cause>& causes() {
  static const std::vector<Cause> all = load_causes();
  return all;
}

}  // namespace orrery
