// SPDX-License-Identifier: Apache-2.0
// Knows how the commands that take settings answer them, for one question or for many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/app/answer/answer.h"
#include "sim/app/answer/exit_code.h"
#include "sim/app/report/refusal.h"
#include "sim/base/json/tree.h"
#include "sim/question/plan/question.h"
#include "sim/question/settings/catalogues.h"
#include "sim/question/settings/settings.h"

namespace orrery {

// What a question is answered with, beside its settings.
struct AskedWith {
  Catalogues& catalogues;
  std::optional<std::uint64_t> seed = {};
  int threads = 0;  // 0: all cores
  std::function<void(double share, std::int64_t count)> progress = {};
  // Of an answer that is repeated as far as it went, whatever time that took: the batches of an
  // advice (0: all), and what its "stopped_after" holds, a value of each part (none: all of it).
  std::int64_t most_batches = 0;
  std::optional<std::vector<std::optional<std::int64_t>>> stop_after = {};
};

// One prediction. Files that the settings name stand inline in `settings`.
struct Simulated {
  JsonValue settings;
  Scenario scenario;
  Prediction prediction;
  std::optional<Reasons> reasons;
  std::optional<Refusal> refused;  // then nothing is predicted
  std::string catalogue;           // its hash
  ExitCode code() const;
};
Simulated simulate_settings(const JsonValue& settings, const AskedWith& with);

// One search for the best layouts.
struct Advised {
  JsonValue settings;
  Question question;
  Advice advice;
  std::optional<Refusal> refused;  // then nothing is searched
  std::string catalogue;           // its hash
  ExitCode code() const;
};
Advised advise_settings(const JsonValue& settings, const AskedWith& with);

// One capacity question. `file` names what was asked, with files inline.
struct Planned {
  PlanFile file;
  PlanResult result;
  std::optional<PlanDetail> detail;
  std::string catalogue;  // its hash
  ExitCode code() const;
};
Planned plan_settings(const JsonValue& question, const AskedWith& with);

// What was found, for machines.
Json to_json(const Simulated& simulated);
Json to_json(const Advised& advised);
Json to_json(const Planned& planned);

// The answer of a command ("simulate", "advise" or "plan") to one question, for machines.
MachineAnswer answer_for_machines(const std::string& command, const JsonValue& settings,
                                  const AskedWith& with);

}  // namespace orrery
