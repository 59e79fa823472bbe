// SPDX-License-Identifier: Apache-2.0
// Knows the command that holds predictions against measured runs.
#pragma once

#include <string>
#include <vector>

#include "sim/app/answer/answer.h"
#include "sim/app/answer/printed.h"
#include "sim/app/page/outputs.h"
#include "sim/base/tasks/tasks.h"

namespace orrery {

struct ValidateOptions {
  std::vector<std::string> files;  // empty: the tables of validation/measurements
  // One of leave_out_kinds(): values are fitted without each group in turn.
  std::string leave_out;
  std::string model_error;   // with "nested": file that the error of the rows left out goes to
  std::string write_nested;  // with "nested": file that these errors go to
  bool nested = false;       // prints the shipped file of them
  bool free = false;         // prints the stacks' values that are no facts
  bool fit = false;          // prints step-level values fitted per stack
  bool json = false;
  bool rows = false;        // a line for every row
  bool regions = false;     // small, medium and large kernels apart
  bool kernels = false;     // of the shipped measurements only single kernels
  bool details = false;     // the rows that are farthest off, and errors by what runs were
  bool advise = false;      // the advisor's own layout against the published one, job by job
  std::string gates;        // a file of gates: judged, and the exit code is 1 where one fails
  std::string write_gates;  // a file of gates to make or to tighten
  LookFiles looks;          // a page with charts, and the charts alone
  bool quiet = false;       // no progress on stderr
  int threads = 0;          // 0: all cores
  Tasks* tasks = nullptr;   // with leave_out: where processes share the fits
};

// Predicts every row of the tables and says how far predictions are from measurements. Errors: a
// table of a kind that is not supported, a missing column, a cell that does not parse.
Printed validate_tables(const ValidateOptions& options);

// What an answer for machines says it was asked: the flags, and the text of every table.
AnswerHead validate_head(const ValidateOptions& options);

}  // namespace orrery
