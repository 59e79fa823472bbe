// SPDX-License-Identifier: Apache-2.0
// Prints how predictions do without the rows that they are held against.
#pragma once

#include <string>
#include <vector>

#include "sim/app/validate/validate.h"
#include "sim/outcome/model_error.h"
#include "sim/validate/score/report.h"
#include "sim/validate/serving/serving_row.h"

namespace orrery {

// What --leave-out prints. "blind" also says which rule each source got and how ranges do that are
// made of the errors of these rows, or of other sources' rows alone.
std::string left_out_report(const std::vector<ScoredRow>& rows, const ValidateOptions& options);
// The same rows four times: as they are, as runs of models that no stack knows, of those that no
// launch program names either, and of models and programs that no stack knows (Unknown).
struct UnseenRows {
  std::vector<ScoredRow> known, new_models, unscripted, new_programs;
};
// The same of "nested". With options.model_error it writes what ranges are made of to that file,
// collectives and memory as in `error`.
std::string nested_report(const UnseenRows& rows, const ModelError& error,
                          const ValidateOptions& options);

// The same of served runs: with options.model_error it writes validation/served_error.json.
std::string served_nested_report(const std::vector<ServingRow>& rows,
                                 const ValidateOptions& options);

}  // namespace orrery
