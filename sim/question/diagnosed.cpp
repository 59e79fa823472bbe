// SPDX-License-Identifier: Apache-2.0
// Reads what a run left, predicts it, and holds one against the other.
#include "sim/question/diagnosed.h"

#include "sim/base/json/json.h"
#include "sim/base/text/words.h"
#include "sim/question/action_places.h"
#include "sim/question/settings/given_file.h"

namespace orrery {

Observations read_observations(const DiagnoseFiles& files, std::vector<std::string>& kinds) {
  Observations run = read_run_files(files.files, kinds);
  if (files.step.empty()) return run;
  const double step = JsonValue::from(files.step, "--step").si(Seconds::dimension);
  if (!(step > 0))
    throw Error({.file = "--step", .found = files.step, .expected = "a time above 0, \"21.3 s\""});
  run.step_s = step;
  return run;
}

// A serving engine's log tells the batch and the history of its steps.
static JsonValue with_logged_batch(const JsonValue& settings, const Observations& run) {
  const auto phase = settings.find("phase");
  if (!run.log || !phase || !phase->is_string() || phase->text() != "decode") return settings;
  SortedJson whole = settings.raw();
  const auto fill = [&](const char* key, const std::optional<std::int64_t>& value) {
    if (value && !settings.find(key)) whole[key] = *value;
  };
  fill("batch", run.log->sequences);
  fill("context", run.log->history);
  return JsonValue::from(std::move(whole), settings.file());
}

Diagnosed diagnose_settings(const JsonValue& settings, const DiagnoseFiles& files,
                            const AskedWith& with) {
  Diagnosed out;
  const Observations run = read_observations(files, out.kinds);
  if (!run.usual_step())
    throw Error({.file = "diagnose",
                 .found = out.kinds.empty() ? "no time of a step"
                                            : "no time of a step in " + joined(out.kinds, ", "),
                 .expected = "--step, a log, or profiles"});
  out.simulated = simulate_settings(with_logged_batch(settings, run), with);
  if (out.simulated.refused) return out;
  out.diagnosis = diagnose(out.simulated.scenario, out.simulated.prediction, run);
  if (const auto given = given_run_in(settings)) add_places(out.diagnosis->actions, *given);
  return out;
}

}  // namespace orrery
