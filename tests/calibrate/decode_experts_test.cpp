// SPDX-License-Identifier: Apache-2.0
// Holds the experts of decode steps against layers that were timed on an H200.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/base/json.h"
#include "sim/base/statistics.h"
#include "sim/base/work.h"
#include "sim/calibrate/expected_time.h"

namespace orrery {
namespace {

std::vector<JsonValue> layers(const std::string& kernel) {
  const auto file = data_root() / "validation/measurements/decode_experts/h200.jsonl";
  std::ifstream stream(file);
  std::vector<JsonValue> out;
  for (std::string line; std::getline(stream, line);) {
    const JsonValue sample = JsonValue::parse(line, file.string());
    if (sample.at("record").text() == "sample" && sample.at("variant").text() == kernel)
      out.push_back(sample);
  }
  return out;
}

// Up, gate and down of the experts that had rows.
OperatorRow row_of(const JsonValue& sample) {
  const std::int64_t groups = std::llround(sample.at("reached").number());
  const std::int64_t rows = sample.at("rows").integer() * sample.at("topk").integer();
  Work up{.kind = WorkKind::grouped_gemm,
          .input = Format::bf16,
          .output = Format::bf16,
          .m = std::max<std::int64_t>(1, rows / groups),
          .n = 2 * sample.at("ffn").integer(),
          .k = sample.at("hidden").integer(),
          .groups = groups};
  Work down = up;
  down.n = sample.at("hidden").integer();
  down.k = sample.at("ffn").integer();
  OperatorRow row{.count = 2, .measured = microseconds(sample.at("value").number())};
  row.kernels[0] = {.work = up, .library = Library::flashinfer};
  row.kernels[1] = {.work = down, .library = Library::flashinfer};
  return row;
}

// The kernel takes blocks of 16 rows: experts with more read their weights again, which serving
// engines' larger blocks do not.
bool fits_blocks(const JsonValue& sample) {
  return sample.at("rows").integer() * sample.at("topk").integer() <=
         8 * sample.at("experts").integer();
}

TEST_CASE("experts of a decode step cost what reading those with rows costs") {
  const Machine machine = load_machine("h200-sxm", true);
  std::vector<double> errors;
  for (const JsonValue& sample : layers("triton")) {
    if (!fits_blocks(sample)) continue;
    const OperatorRow row = row_of(sample);
    const double error = expected_time(row, machine) / row.measured - 1;
    INFO(sample.at("shape").text() << ", " << sample.at("rows").integer() << " rows: " << error);
    // Below 50 us the starts of two products and of what stands between them decide.
    CHECK(std::abs(error) < (row.measured < microseconds(50) ? 0.45 : 0.13));
    errors.push_back(std::abs(error));
  }
  CHECK(errors.size() == 22);
  CHECK(median(errors) < 0.06);
}

TEST_CASE("rows that are routed by chance reach as many experts as the formula says") {
  for (const JsonValue& sample : layers("triton")) {
    const double experts = sample.at("experts").number(), rows = sample.at("rows").number();
    if (experts < 100) continue;  // few layers of few experts: the draws themselves differ
    const double missed = std::pow(1 - sample.at("topk").number() / experts, rows);
    INFO(sample.at("shape").text() << ", " << rows << " rows");
    CHECK(std::abs(sample.at("reached").number() - experts * (1 - missed)) < 0.02 * experts);
  }
}

}  // namespace
}  // namespace orrery
