// SPDX-License-Identifier: Apache-2.0
// Reads and writes the error of RL steps and makes ranges of it.
#include "sim/outcome/rl/rl_error.h"

#include <cmath>

#include "sim/base/json/tree.h"

namespace orrery {

RlError load_rl_error(const std::filesystem::path& path) {
  const JsonValue file = JsonValue::load(path);
  file.expect_only({"written_by", "step"});
  return {.step = read_model_error(file.at("step"))};
}

std::string to_json_text(const RlError& error) {
  const Json file = {{"written_by",
                      "orrery validate validation/measurements/rl/*.csv --leave-out nested "
                      "--model-error FILE"},
                     {"step", model_error_json(error.step)}};
  return file.dump(2) + '\n';
}

RunKind rl_run(const RlJob& job) {
  const Device& device = job.cluster.device;
  return {.stack = job.program.name,
          .family = job.model.family,
          .kind = "rl",
          .architecture = std::string(to_text(device.architecture)),
          .device = device.name,
          .precision = std::string(to_text(job.generation.layout.precision)),
          .gpus = static_cast<double>(job.cluster.gpus)};
}

RlRange rl_range(const RunKind& run, const RlError& error) {
  const PredictionRange range = prediction_range(run, {}, {}, &error.step);
  return {.low = std::exp(-range.below.total()),
          .high = std::exp(range.above.total()),
          .widened = range.widened};
}

}  // namespace orrery
