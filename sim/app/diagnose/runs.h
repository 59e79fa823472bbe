// SPDX-License-Identifier: Apache-2.0
// Knows how well diagnose tells faults that were made on purpose: a table of truth and finding.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/diagnose/cause/causes.h"
#include "sim/paper/document.h"
#include "sim/question/ask.h"

namespace orrery {

// One run of a folder of runs: FOLDER/NAME/run.json {id, program, truth, held}, with its files
// beside it; the program's settings are FOLDER/../programs/PROGRAM.json.
struct FaultRun {
  std::string id, program, truth;   // the cause that was made, or "healthy"
  bool held = false;                // nothing was set by it
  std::vector<double> steps_s;      // where it has no log
  std::optional<double> healthy_s;  // the step without the fault, where that is known
  std::filesystem::path folder;
  // Of the answer, once it was asked.
  std::string found;             // most probable cause
  std::vector<std::string> top;  // the first three
  double probability = 0;        // of the truth
  double step_s = 0;             // mean step as measured
  double cost = 0;               // of the fault: over the median healthy run of the program, less 1
  double explained_s = 0;        // of the step, as found
  double cost_s = 0;             // of the step, as measured
  std::string other;             // whether the fault cost nothing, and is not counted
  bool healthy() const { return truth == cause_text[CauseKind::healthy]; }
  bool counted() const { return other.empty(); }
};

std::vector<FaultRun> diagnose_runs(const std::filesystem::path& folder, const AskedWith& with);
Document runs_document(const std::vector<FaultRun>& runs, bool full, std::size_t width);
Json runs_json(const std::vector<FaultRun>& runs);

}  // namespace orrery
