// SPDX-License-Identifier: Apache-2.0
// Tests fits of measured samples: known parameters come back, one bad row does not matter.
#include <catch2/catch.hpp>

#include "sim/calibrate/fit/fit.h"
#include "sim/calibrate/log/measured_tables.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "tests/calibrate/synthetic_log.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

FitReport fit_text(const std::string& text, const FitOptions& options = {}) {
  const ScratchFolder folder("measured_fit");
  return fit_device("", {folder.add("part.jsonl", text)}, options);
}

const ParameterSpread* spread_of(const Curve& curve, const std::string& name) {
  for (const ParameterSpread& s : curve.quality.spread)
    if (s.name == name) return &s;
  return nullptr;
}

TEST_CASE("a known product curve comes back from its noisy samples") {
  const Curve truth = known_gemm();
  KnownGpu gpu(truth, 0.02, 7);
  const FitReport report = fit_text(gemm_log(gpu, 40));
  CHECK(report.device == "h200-sxm");
  REQUIRE(report.rows.size() == 1);
  const FitRow& row = report.rows[0];
  CHECK(row.n_held > 30);
  CHECK(row.n_fit + row.n_held == 280);
  CHECK(row.median < 0.02);
  CHECK(row.p90 < 0.05);
  CHECK(row.cross_validated < 0.02);
  CHECK(row.over.rows + row.under.rows == row.n_held);
  CHECK(row.spread > 0.0005);
  CHECK(row.spread < 0.02);
  CHECK(row.per_octave < 0.05);
  const Curve& found = report.calibration.curve(WorkKind::gemm, Format::bf16, Library::cublas);
  for (const auto& [name, member] : {std::pair{"tensor_efficiency", &Curve::tensor_efficiency},
                                     std::pair{"memory_efficiency", &Curve::memory_efficiency},
                                     std::pair{"fixed", &Curve::fixed_seconds}}) {
    const ParameterSpread* spread = spread_of(found, name);
    REQUIRE(spread);
    INFO(name << " " << found.*member << " +- " << spread->relative_error);
    CHECK(std::abs(found.*member / (truth.*member) - 1) < 3.5 * spread->relative_error + 0.005);
    CHECK(spread->relative_error < 0.1);
  }
  CHECK(found.quality.region.extents.size() == 4);
  CHECK(found.scale.source == "orrery-measured-h200-sxm");
}

TEST_CASE("a doctored sample moves a fitted curve little") {
  KnownGpu gpu(known_gemm(), 0.01, 3);
  const std::string text = gemm_log(gpu, 12);
  const std::string doctored = text + gemm_line({.m = 4096, .n = 4096, .k = 4096}, 20000) +
                               gemm_line({.m = 64, .n = 4096, .k = 4096}, 0.8);
  const Curve a = fit_text(text).calibration.curves[0];
  const Curve b = fit_text(doctored).calibration.curves[0];
  CHECK(b.tensor_efficiency == Approx(a.tensor_efficiency).epsilon(0.03));
  CHECK(b.memory_efficiency == Approx(a.memory_efficiency).epsilon(0.05));
}

TEST_CASE("streams tell their bandwidth, their start and their cache") {
  Curve truth = known_curve(WorkKind::copy, Library::own);
  truth.l2_efficiency = 0.5;
  KnownGpu gpu(truth, 0.01, 4);
  std::string text = conditions_line();
  for (double bytes = 1 << 14; bytes < 4e9; bytes *= 1.5) {
    const Work w{.kind = WorkKind::copy,
                 .bytes_read = std::floor(bytes),
                 .bytes_written = std::floor(bytes)};
    text += stream_line(w, "copy", gpu.us(w, Library::own));
    if (bytes < 2e7) text += stream_line(w, "copy-cached", gpu.us(w, Library::own, false));
  }
  const FitReport report = fit_text(text);
  const Curve& found = report.calibration.curves[0];
  CHECK(found.memory_efficiency == Approx(0.9).epsilon(0.01));
  CHECK(found.fixed_seconds == Approx(2.5e-6).epsilon(0.03));
  CHECK(found.l2_efficiency == Approx(0.5).epsilon(0.1));
  const FitRow& row = report.rows[0];
  CHECK(row.median < 0.02);
  // Every shape stands in one region, predicted by a fit without it.
  REQUIRE(row.regions.size() == 3);
  int in_regions = 0;
  for (const RegionError& region : row.regions) {
    in_regions += region.rows;
    CHECK(region.median < 0.03);
  }
  CHECK(in_regions == row.n_fit + row.n_held);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST_CASE("fp16 runs on the kernels of bf16, at its own rate") {
  Curve slower = known_gemm();
  slower.tensor_efficiency *= 0.95;
  KnownGpu gpu(known_gemm(), 0.02, 7), other(slower, 0.02, 8);
  const FitReport report =
      fit_text(gemm_log(gpu, 40) + replaced(gemm_log(other, 8), "\"bf16\"", "\"fp16\""));
  REQUIRE(report.rows.size() == 2);
  const auto curve = [&](Format format) {
    return report.calibration.curve(WorkKind::gemm, format, Library::cublas);
  };
  const Curve bf16 = curve(Format::bf16), fp16 = curve(Format::fp16);
  CHECK(fp16.format == Format::fp16);
  CHECK(fp16.k_half == bf16.k_half);
  CHECK(fp16.tile_loss == bf16.tile_loss);
  CHECK(fp16.tensor_efficiency / bf16.tensor_efficiency == Approx(0.95).epsilon(0.01));
}

TEST_CASE("operations of a framework are fitted one by one, never as one curve") {
  std::string text = conditions_line();
  for (const double bytes : {1e7, 3e7, 1e8, 3e8, 1e9}) {
    const Work w{.kind = WorkKind::elementwise, .bytes_read = bytes, .bytes_written = bytes};
    text += stream_line(w, "add", 2 + bytes / 2e6) + stream_line(w, "transpose", 2 + bytes / 4e5);
    text += stream_line(w, "impossible", bytes / 1e9);
  }
  const FitReport report = fit_text(replaced(text, "\"own\"", "\"eager\""));
  CHECK(report.calibration.curves.empty());
  REQUIRE(report.rows.size() == 2);
  for (const FitRow& row : report.rows) CHECK(row.p90 < 0.05);
  CHECK_THAT(report.rows[0].note, Contains("not fitted: 5 samples faster than the memory"));
}

TEST_CASE("calls of a few kilobytes find their operands in the cache") {
  const auto line = [](double bytes) {
    const Work w{.kind = WorkKind::norm, .bytes_read = bytes, .bytes_written = bytes};
    return replaced(stream_line(w, "rms", 5),
                    fmt::format("\"calls\":{}", 2 + static_cast<int>(1e8 / bytes)),
                    "\"calls\":400");
  };
  const ScratchFolder folder("cached");
  const auto file =
      folder.add("part.jsonl", conditions_line() + line(4096) + line(64000) + line(1e6));
  const auto tables = measured_tables(read_measured_log({file}));
  REQUIRE(tables.size() == 1);
  const auto& rows = tables[0].rows;
  CHECK(rows[0].cached == 1);
  CHECK_FALSE(rows[0].cold);
  CHECK(rows[1].cached > 0.2);  // 400 calls of 128 kB: half as much again as the cache keeps
  CHECK(rows[1].cached < 0.6);
  CHECK(rows[2].cached == 0);
  CHECK(rows[2].cold);
}

TEST_CASE("the text of a fit does not depend on the threads and reads back") {
  KnownGpu gpu(known_gemm(), 0.02, 9);
  const std::string text = gemm_log(gpu, 10);
  const FitReport one = fit_text(text, {.threads = 1}), three = fit_text(text, {.threads = 3});
  CHECK(one.json == three.json);
  CHECK_THAT(one.json, Contains("\"measured\"") && Contains("580.1"));
  const Calibration again = read_calibration(JsonValue::parse(one.json, "fit.json"));
  CHECK(again.curves.size() == 1);
  CHECK(again.curves[0].quality.region.per_octave ==
        Approx(one.rows[0].per_octave).epsilon(1e-3).margin(1e-6));
}

TEST_CASE("samples of another device, or no samples, are refused") {
  const ScratchFolder folder("measured_fit_errors");
  KnownGpu gpu(known_gemm(), 0.02, 9);
  const auto file = folder.add("part.jsonl", gemm_log(gpu, 2));
  CHECK_THAT(error_text([&] { fit_device("b200-sxm", {file}); }),
             Contains("h200-sxm") && Contains("b200-sxm"));
  CHECK_THAT(error_text([&] { fit_device("", {folder.add("none.jsonl", "")}); }),
             Contains("no lines"));
  CHECK_THAT(error_text([&] { fit_device("h200-sxm", {file, "table.csv"}); }), Contains("*.csv"));
}

}  // namespace
}  // namespace orrery
