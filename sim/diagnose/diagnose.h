// SPDX-License-Identifier: Apache-2.0
// Holds a real run against its prediction: where the gap is, what explains it, what to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/diagnose/gap.h"
#include "sim/diagnose/judge.h"
#include "sim/explain/traps.h"
#include "sim/outcome/prediction.h"

namespace orrery {

// Something to do, with what it gains.
struct Action {
  CauseKind cause = CauseKind::healthy;
  std::string sentence;
  double gain = 0;         // steps per second, over those of now, less one
  double probability = 0;  // that its cause is there
};

struct Diagnosis {
  Gap gap;
  std::vector<Finding> findings;  // most probable first
  std::vector<Action> actions;    // most gain times probability first
  std::vector<Trap> traps;        // of the run as it is set up, whatever else is wrong
  // Two causes that these files cannot tell apart, and what would: a sentence; empty: none.
  std::string to_measure;
  std::vector<std::string> notes;   // of the files: what was left out or assumed
  std::vector<std::string> unlike;  // what the log tells of the run that was predicted otherwise
  bool healthy = false;             // nothing found
  // What was measured is most likely not what was predicted: nothing can be told of causes.
  bool another_run = false;
  Seen seen;

  const Finding& first() const { return findings.front(); }
};

// `prediction` is of the scenario, with its range where it has one.
Diagnosis diagnose(const Scenario& scenario, const Prediction& prediction,
                   const Observations& observations);

// The cause's title, or its action, at a rank.
std::string title_of(const Finding& finding);
// What to check where another run was predicted than the one that was measured.
const std::string& what_to_check();

}  // namespace orrery
