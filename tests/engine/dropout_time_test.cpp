// SPDX-License-Identifier: Apache-2.0
// Holds dropout in attention to what it took on an H100: validation/measurements/training_parts.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"
#include "sim/base/json/json.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

const std::filesystem::path root = ORRERY_SOURCE_DIR;

struct Times {
  Work work;
  double without = 0, with = 0;  // seconds
};

// cuDNN's attention by direction and shape.
std::map<std::string, Times> measured() {
  std::map<std::string, Times> all;
  std::ifstream lines(root / "validation/measurements/training_parts/h100_products.jsonl");
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"cudnn-attention\"") == std::string::npos ||
        line.find("\"part\":\"dropout\"") == std::string::npos ||
        line.find("\"record\":\"sample\"") == std::string::npos)
      continue;
    const JsonValue row = JsonValue::parse(line, "h100_products.jsonl");
    const auto size = [&row](const char* key) { return row.at(key).integer(); };
    Work work{.kind = work_kind_text.from(row.at("kind")),
              .batch = size("batch"),
              .heads = size("heads"),
              .kv_heads = size("kv_heads"),
              .q_length = size("q_length"),
              .kv_length = size("kv_length"),
              .qk_dim = size("qk_dim"),
              .v_dim = size("v_dim"),
              .window = size("window"),
              .causal = size("causal") == 1};
    Times& times = all[fmt::format("{} {} x {} x {} x {}", row.at("kind").text(), work.batch,
                                   work.heads, work.q_length, work.qk_dim)];
    times.work = work;
    (row.at("dropout").number() > 0 ? times.with : times.without) =
        row.at("time_us").number() * 1e-6;
  }
  return all;
}

TEST_CASE("random numbers of dropout take what they took, beside all else of attention") {
  const Device catalogued = load_device("h100-sxm");
  const ResolvedDevice device = catalogued.resolved();
  const Calibration calibration = load_calibration(catalogued);
  const StackDropout dropout;
  int compared = 0;
  for (const auto& [shape, times] : measured()) {
    if (times.with == 0 || times.without == 0) continue;
    const bool forward = times.work.kind == WorkKind::attention_forward;
    Kernel kernel{.work = times.work, .library = Library::cudnn_attention};
    const double plain = kernel_time(kernel, device, calibration).time.si();
    kernel.work.vector_flop = visible_scores(kernel.work) *
                              (forward ? dropout.score_forward : dropout.score_backward).get();
    const double more = kernel_time(kernel, device, calibration).time.si() - plain;
    CAPTURE(shape);
    CHECK(more == Approx(times.with - times.without).epsilon(0.16));
    ++compared;
  }
  CHECK(compared == 36);
}

}  // namespace
}  // namespace orrery
