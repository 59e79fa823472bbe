// SPDX-License-Identifier: Apache-2.0
// Knows how far predicted steps of RL were off, and the 90% ranges that follow.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/outcome/model_error.h"
#include "sim/outcome/rl/rl_job.h"

namespace orrery {

// Of the time of a step.
// `validate validation/measurements/rl/*.csv --leave-out nested --model-error
// validation/rl_error.json` writes it.
struct RlError {
  ModelError step;
};
// Error for a file that is missing or does not have this shape.
RlError load_rl_error(const std::filesystem::path& file);
std::string to_json_text(const RlError& error);

// What of a job says how well its step is predicted.
RunKind rl_run(const RlJob& job);

// Factors on a predicted step between which nine of ten measured ones are meant to lie.
struct RlRange {
  double low = 1, high = 1;
  std::vector<std::string> widened;  // sentences: what the job leaves of all that was measured

  // The same of tokens a second and GPU: those of a step are given.
  double least_rate() const { return 1 / high; }
  double most_rate() const { return 1 / low; }
};
RlRange rl_range(const RunKind& run, const RlError& error);

}  // namespace orrery
