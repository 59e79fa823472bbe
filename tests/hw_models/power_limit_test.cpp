// SPDX-License-Identifier: Apache-2.0
// Holds speed and power of sustained products to four runs of H100s to which nothing was fitted.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/power.h"
#include "sim/base/json/json.h"
#include "tests/base/worst_rows.h"
#include "tests/hw_models/machine.h"

namespace orrery {
namespace {

struct Row {
  std::string name;
  double seconds = 0, watts = 0;  // measured
  double predicted_seconds = 0, predicted_watts = 0;
  double speed_error() const { return std::abs(predicted_seconds / seconds - 1); }
  double power_error() const { return std::abs(predicted_watts / watts - 1); }
};

std::optional<Kernel> kernel_of(const std::string& variant, Format format) {
  const auto gemm = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return Kernel{.work = {.kind = WorkKind::gemm, .input = format, .m = m, .n = n, .k = k},
                  .library = Library::cublas};
  };
  if (variant == "gemm 8192-cube") return gemm(8192, 8192, 8192);
  if (variant == "gemm 4096x28672x4096") return gemm(4096, 28672, 4096);
  if (variant == "gemm 4096x4096x14336") return gemm(4096, 4096, 14336);
  return std::nullopt;
}

std::vector<std::string> lines_of(const std::vector<std::string>& names) {
  std::vector<std::string> lines;
  for (const std::string& name : names) {
    std::ifstream file(std::filesystem::path(ORRERY_SOURCE_DIR) / "validation" / "measurements" /
                       "h100_power" / name);
    REQUIRE(file);
    for (std::string text; std::getline(file, text);) lines.push_back(text);
  }
  return lines;
}

std::vector<Row> sustained_rows() {
  const Machine h100("h100-sxm");
  std::vector<Row> rows;
  for (const std::string& text : lines_of({"power.jsonl", "power-2.jsonl"})) {
    const JsonValue line = JsonValue::parse(text, "h100_power");
    if (line.at("record").text() != "sample") continue;
    const auto format = format_text.find(line.at("input").text());
    if (!format) continue;
    const auto kernel = kernel_of(line.at("variant").text(), *format);
    if (!kernel) continue;
    Row row{.name = line.at("variant").text() + " " + line.at("input").text(),
            .seconds = 1e-6 * line.at("time_us").number(),
            .watts = line.at("power_w").number()};
    const KernelTime t = h100.time(*kernel);
    const Seconds sustained = sustained_time(t.time, t.energy, h100.device);
    row.predicted_seconds = sustained.si();
    row.predicted_watts = mean_power(t.energy, sustained, h100.device).si();
    rows.push_back(row);
  }
  return rows;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Wanted: 3%. Boards of one kind differ by as much: one shape takes 1,397 to 1,439 us on two.
TEST_CASE("large products at the limit of an H100 are as fast and draw as much as measured") {
  const std::vector<Row> rows = sustained_rows();
  REQUIRE(rows.size() == 28);
  std::vector<double> speed, power;
  WorstRows worst;
  for (const Row& row : rows) {
    INFO(fmt::format("{}: {:.0f} us, predicted {:.0f}; {:.0f} W, predicted {:.0f}", row.name,
                     1e6 * row.seconds, 1e6 * row.predicted_seconds, row.watts,
                     row.predicted_watts));
    CHECK(row.speed_error() < 0.045);
    CHECK(row.power_error() < 0.045);
    worst.add(row.name + ", us", 1e6 * row.predicted_seconds, 1e6 * row.seconds,
              100 * row.speed_error(), "%");
    worst.add(row.name + ", W", row.predicted_watts, row.watts, 100 * row.power_error(), "%");
    speed.push_back(row.speed_error());
    power.push_back(row.power_error());
  }
  worst.print("products at the limit of H100s");
  CHECK(median(speed) < 0.015);
  CHECK(median(power) < 0.015);
}

}  // namespace
}  // namespace orrery
