// SPDX-License-Identifier: Apache-2.0
// Holds the experts of decode steps against layers that were timed on an H200.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/base/statistics.h"
#include "sim/base/work.h"
#include "sim/calibrate/health/expected_time.h"
#include "sim/calibrate/log/measured_log.h"

namespace orrery {
namespace {

std::vector<Sample> layers(const std::string& kernel) {
  const MeasuredLog log =
      read_measured_log({data_root() / "validation/measurements/decode_experts/h200.jsonl"});
  std::vector<Sample> out;
  for (const Sample& sample : log.samples)
    if (sample.variant == kernel) out.push_back(sample);
  return out;
}

std::int64_t whole(const Sample& sample, const char* key) {
  return std::llround(sample.number(key));
}

// Up, gate and down of the experts that had rows.
OperatorRow row_of(const Sample& sample) {
  const std::int64_t groups = whole(sample, "reached");
  const std::int64_t rows = whole(sample, "rows") * whole(sample, "topk");
  Work up{.kind = WorkKind::grouped_gemm,
          .input = Format::bf16,
          .output = Format::bf16,
          .m = std::max<std::int64_t>(1, rows / groups),
          .n = 2 * whole(sample, "ffn"),
          .k = whole(sample, "hidden"),
          .groups = groups};
  Work down = up;
  down.n = whole(sample, "hidden");
  down.k = whole(sample, "ffn");
  OperatorRow row{.count = 2, .measured = microseconds(sample.number("value"))};
  row.kernels[0] = {.work = up, .library = Library::flashinfer};
  row.kernels[1] = {.work = down, .library = Library::flashinfer};
  return row;
}

// The kernel takes blocks of 16 rows: experts with more read their weights again, which serving
// engines' larger blocks do not.
bool fits_blocks(const Sample& sample) {
  return whole(sample, "rows") * whole(sample, "topk") <= 8 * whole(sample, "experts");
}

TEST_CASE("experts of a decode step cost what reading those with rows costs") {
  const Machine machine = load_machine("h200-sxm", true);
  std::vector<double> errors;
  for (const Sample& sample : layers("triton")) {
    if (!fits_blocks(sample)) continue;
    const OperatorRow row = row_of(sample);
    const double error = expected_time(row, machine) / row.measured - 1;
    INFO(sample.text_or("shape", "") << ", " << whole(sample, "rows") << " rows: " << error);
    // Below 50 us the starts of two products and of what stands between them decide.
    CHECK(std::abs(error) < (row.measured < microseconds(50) ? 0.45 : 0.13));
    errors.push_back(std::abs(error));
  }
  CHECK(errors.size() == 22);
  CHECK(median(errors) < 0.07);
}

TEST_CASE("rows that are routed by chance reach as many experts as the formula says") {
  for (const Sample& sample : layers("triton")) {
    const double experts = sample.number("experts"), rows = sample.number("rows");
    if (experts < 100) continue;  // few layers of few experts: the draws themselves differ
    const double missed = std::pow(1 - sample.number("topk") / experts, rows);
    INFO(sample.text_or("shape", "") << ", " << rows << " rows");
    CHECK(std::abs(sample.number("reached") - experts * (1 - missed)) < 0.02 * experts);
  }
}

}  // namespace
}  // namespace orrery
