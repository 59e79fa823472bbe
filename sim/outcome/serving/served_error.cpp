// SPDX-License-Identifier: Apache-2.0
// Reads and writes the error of served models and makes ranges of it.
#include "sim/outcome/serving/served_error.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/json/tree.h"

namespace orrery {
namespace {

ServedRange range_of(const RunKind& run, const ModelError& error,
                     std::vector<std::string>& widened) {
  const PredictionRange range = prediction_range(run, {}, {}, &error);
  if (widened.empty()) widened = range.widened;
  return {.low = std::exp(-range.below.total()), .high = std::exp(range.above.total())};
}

}  // namespace

ServedError load_served_error(const std::filesystem::path& path) {
  const JsonValue file = JsonValue::load(path);
  file.expect_only({"written_by", "ttft", "tpot", "tokens_s_gpu"});
  ServedError error;
  visit_served_error(error,
                     [&](const char* key, ModelError& of) { of = read_model_error(file.at(key)); });
  return error;
}

std::string to_json_text(const ServedError& error) {
  Json file = {{"written_by",
                "orrery validate validation/measurements/serving/*.csv --leave-out nested "
                "--model-error FILE"}};
  visit_served_error(
      error, [&](const char* key, const ModelError& of) { file[key] = model_error_json(of); });
  return file.dump(2) + '\n';
}

const char* served_kind(bool disaggregated, bool guessed) {
  return guessed ? "guessed tokens" : disaggregated ? "disaggregated" : "engines of one kind";
}

RunKind served_run(const Stack& stack, const Model& model, const Device& device,
                   const EngineLayout& layout, bool disaggregated, bool guessed) {
  return {.stack = stack.name,
          .family = model.family,
          .kind = served_kind(disaggregated, guessed),
          .architecture = std::string(to_text(device.architecture)),
          .device = device.name,
          .precision = std::string(to_text(layout.precision)),
          .gpus = static_cast<double>(layout.gpus()),
          .unknown_release = stack.asked_is_later ? stack.asked : ""};
}

RunKind after_first_token(RunKind run) {
  run.waits = 0;
  return run;
}

ServedRanges served_ranges(const ServiceCase& s, const RequestTime& mean,
                           const ServedError& error) {
  RunKind run = served_run(s.stack, s.model, s.cluster.device, s.engines.layout,
                           s.decode.has_value(), s.guessing.has_value());
  run.waits = mean.waits();
  return served_ranges(run, error);
}

ServedRanges served_ranges(const RunKind& run, const ServedError& error) {
  ServedRanges ranges;
  ranges.ttft = range_of(run, error.ttft, ranges.widened);
  constexpr double much_wider = 1.25;  // worth a sentence; judged
  if (error.ttft.scale(run) > much_wider)
    ranges.widened.push_back(
        fmt::format("first tokens wait for a step for {:.0f}% of their time: of measured runs "
                    "those that wait most were predicted worst",
                    100 * run.waits));
  const RunKind after = after_first_token(run);
  ranges.tpot = range_of(after, error.tpot, ranges.widened);
  // The error is that of the time of a token.
  const ServedRange of_time = range_of(after, error.tokens_s_gpu, ranges.widened);
  ranges.tokens_s_gpu = {.low = 1 / of_time.high, .high = 1 / of_time.low};
  return ranges;
}

}  // namespace orrery
