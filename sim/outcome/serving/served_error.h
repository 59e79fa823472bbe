// SPDX-License-Identifier: Apache-2.0
// Knows how far predictions of served models were off, and the 90% ranges that follow.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/outcome/model_error.h"
#include "sim/outcome/serving/service.h"

namespace orrery {

// Of runs that no fit saw, by what was measured; throughput as the time of a token.
// `validate TABLES --leave-out nested --model-error validation/served_error.json` writes it.
struct ServedError {
  ModelError ttft, tpot, tokens_s_gpu;
};
// Error for a file that is missing or does not have this shape.
ServedError load_served_error(const std::filesystem::path& file);
std::string to_json_text(const ServedError& error);

// visit(key, error) for each; `error` is a ServedError or a const one.
template <class ErrorRef, class Visit>
void visit_served_error(ErrorRef& error, Visit&& visit) {
  visit("ttft", error.ttft);
  visit("tpot", error.tpot);
  visit("tokens_s_gpu", error.tokens_s_gpu);
}

// Kinds of deployments, each with errors of its own: "engines of one kind", "disaggregated",
// "guessed tokens".
const char* served_kind(bool disaggregated, bool guessed);
// What of a deployment says how well it is predicted.
RunKind served_run(const Stack& stack, const Model& model, const Device& device,
                   const EngineLayout& layout, bool disaggregated, bool guessed);

// The same for what comes after the first token: no more waits.
RunKind after_first_token(RunKind run);

// Factors on a prediction between which nine of ten measurements are meant to lie.
struct ServedRange {
  double low = 1, high = 1;
};
struct ServedRanges {
  ServedRange ttft, tpot, tokens_s_gpu;
  std::vector<std::string> widened;  // sentences: what the run leaves of all that was measured
};
ServedRanges served_ranges(const ServiceCase& served, const RequestTime& mean,
                           const ServedError& error);
ServedRanges served_ranges(const RunKind& run, const ServedError& error);

}  // namespace orrery
