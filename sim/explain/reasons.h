// SPDX-License-Identifier: Apache-2.0
// Knows all that is said for a layout: limits, levers, traps, flags, and how it stands to others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/explain/levers.h"
#include "sim/explain/ranking.h"
#include "sim/explain/traps.h"
#include "sim/launch/flags.h"
#include "sim/outcome/prediction.h"

namespace orrery {

struct Reasons {
  std::vector<PhaseLimit> limits;      // the step, then its phases
  std::vector<Counterfactual> levers;  // what better hardware or software would buy
  std::vector<Trap> traps;             // largest gain first
  LaunchFlags flags;
  Ranking ranking;  // advice only
};

// Limits and levers of training on the ideal network alone: a step on flows takes too long to ask
// about thirty of them.
Reasons reasons_for(const Scenario& scenario, const TrapOptions& options);

// A flag or setting that differs between two ways to start a job; empty: not given.
struct FlagChange {
  std::string name, was, is;
};

// Flags of `now`, then environment, that differ or are not in both.
std::vector<FlagChange> flag_changes(const LaunchFlags& now, const LaunchFlags& advised);

// One decision of the advised layout, taken over alone.
struct SingleChange {
  std::string sentence;  // the decision, and where the time goes
  double faster = 0;     // steps per second over those of now, less one
  bool fits = false;
};

// What runs now, held against what is advised.
struct Comparison {
  Scenario now;
  Prediction prediction;  // of it
  // What the advised layout does differently and where the time goes; empty without advice.
  std::string difference;
  double faster = 0;  // steps per second of the advised layout over those of this one, less one
  std::vector<StageBreakdown> where;  // means over stages: now, advised; empty without advice
  std::vector<FlagChange> flags;      // to change; in the order of the advised layout's flags
  // Decisions in which the two differ, one at a time, those that run alone; the fastest that fits
  // first, those that do not fit last.
  std::vector<SingleChange> singles;
  std::vector<std::string> stack;  // sentences: other release or program
  Rival rival;  // this one against the advised layout, with values that are not facts moved
};

// `advised` nullptr: nothing is advised. Leaves `rival` alone.
Comparison compare_with(const Scenario& now, Prediction prediction, const Scenario* advised);

}  // namespace orrery
