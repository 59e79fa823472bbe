// SPDX-License-Identifier: Apache-2.0
// Holds a real run against its prediction: where the gap is, what explains it, what to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/diagnose/gap.h"
#include "sim/diagnose/judge.h"
#include "sim/diagnose/observed/tested_links.h"
#include "sim/explain/traps.h"
#include "sim/outcome/prediction.h"

namespace orrery {

// A line of the user's own file that an action changes.
struct SettingNow {
  std::string place, name, value;  // "train.sh:12", "--num-workers", "2"
};

// Before the change in the words of the program that ran.
inline constexpr const char* action_in_words = " Here: ";

// Something to do, with what it gains.
struct Action {
  CauseKind cause = CauseKind::healthy;
  std::string sentence;
  double gain = 0;         // steps per second, over those of now, less one
  double probability = 0;  // that its cause is there
  std::vector<SettingNow> now = {};
};

struct Diagnosis {
  Gap gap;
  std::vector<Finding> findings;  // most probable first
  std::vector<Action> actions;    // most gain times probability first
  std::vector<Trap> traps;        // of the run as it is set up, whatever else is wrong
  // Two causes that these files cannot tell apart, and what would: a sentence; empty: none.
  std::string to_measure;
  std::vector<TestedLinks> links;    // of nccl-tests, where they were given
  std::vector<std::string> notes;    // of the files: what was left out or assumed
  std::vector<std::string> unlike;   // what the log tells otherwise than the prediction, or --step
  std::optional<double> log_step_s;  // what the log tells where the given step is another
  bool healthy = false;              // nothing found
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
