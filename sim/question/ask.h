// SPDX-License-Identifier: Apache-2.0
// Answers questions: JSON in, values out. The command line asks here, and whatever else asks
// Orrery.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/advisor.h"
#include "sim/base/json/json.h"
#include "sim/base/tasks/tasks.h"
#include "sim/engine/scenario.h"
#include "sim/explain/reasons.h"
#include "sim/outcome/prediction.h"
#include "sim/outcome/timeline.h"
#include "sim/plan/plan.h"
#include "sim/question/plan/question.h"
#include "sim/question/refusal.h"
#include "sim/question/settings/catalogues.h"

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
  // Where processes share the question; else this one does all. After a part of it (Tasks::whole)
  // the answer says nothing.
  Tasks* tasks = nullptr;
};

// One prediction. Files that the settings name stand inline in `settings`.
struct Simulated {
  JsonValue settings;
  Scenario scenario;
  Prediction prediction;
  std::optional<Reasons> reasons;
  std::optional<Timeline> timeline;  // where it is asked for
  std::optional<Refusal> refused;    // then nothing is predicted
  std::string catalogue;             // its hash
  bool exists() const;               // it fits and runs
};
Simulated simulate_settings(const JsonValue& settings, const AskedWith& with);

// One search for the best layouts.
struct Advised {
  JsonValue settings;
  Question question;
  Advice advice;
  std::optional<Refusal> refused;  // then nothing is searched
  std::string catalogue;           // its hash
  bool exists() const;             // a layout was found, or may be by a search that goes on
};
Advised advise_settings(const JsonValue& settings, const AskedWith& with);

// One capacity question. `file` names what was asked, with files inline.
struct Planned {
  PlanFile file;
  PlanResult result;
  std::optional<PlanDetail> detail;
  std::string catalogue;  // its hash
  bool exists() const;    // a point answers it, or may in a search that goes on
};
Planned plan_settings(const JsonValue& question, const AskedWith& with);

// Points `from` to `to` of a capacity question, each for itself: by the layouts of a sweep, without
// the search of all layouts that a plan gives its best points. `result` is of part.file.plan.
struct PlannedPart {
  PlanPart part;
  PlanResult result;
};
PlannedPart plan_part(const PlanPoints& points, std::size_t from, std::size_t to,
                      const AskedWith& with);

}  // namespace orrery
