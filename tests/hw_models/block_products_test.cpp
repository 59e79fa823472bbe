// SPDX-License-Identifier: Apache-2.0
// Holds what FP8 products in blocks draw, tiles that are not full among them, to runs on an H200.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "tests/base/worst_rows.h"
#include "tests/hw_models/machine.h"

namespace orrery {
namespace {

// A call of a run without pauses.
struct Call {
  std::vector<Kernel> kernels;
  std::string name;
  double seconds = 0, watts = 0;
};

// Rows in tiles of an expert that gets `mean` of them by chance.
std::int64_t filled(double mean, double tile) {
  return std::llround(mean < tile ? tile : mean + tile / 2);
}

// The two products of the experts that `rows` reach: gate and up in one, then down.
std::vector<Kernel> experts(Library library, double rows, double reached, double tile,
                            std::int64_t hidden, std::int64_t ffn) {
  const double mean = rows / reached;
  std::vector<Kernel> both;
  for (const auto& [n, k] : {std::pair{2 * ffn, hidden}, std::pair{hidden, ffn}})
    both.push_back({.work = {.kind = WorkKind::grouped_gemm,
                             .input = Format::fp8,
                             .m = std::llround(std::ceil(mean)),
                             .n = n,
                             .k = k,
                             .groups = std::llround(reached),
                             .filled_m = filled(mean, tile)},
                    .library = library});
  return both;
}

std::vector<Kernel> kernels_of(const JsonValue& line) {
  const auto whole = [&](const char* key) { return std::llround(line.at(key).number()); };
  if (line.at("kind").text() == "gemm")
    return {{.work = {.kind = WorkKind::gemm,
                      .input = Format::fp8,
                      .m = whole("m"),
                      .n = whole("n"),
                      .k = whole("k")},
             .library = Library::deepgemm}};
  const double rows = line.at("rows").number(), tile = line.at("tile").number();
  if (line.at("library").text() == "deepgemm") {
    const double reached = 32 * (1 - std::pow(31.0 / 32, rows));
    return experts(Library::trtllm_experts, rows, reached, tile, 7168, 2048);
  }
  return experts(Library::flashinfer, 8 * rows, line.at("reached").number(), tile, whole("hidden"),
                 whole("ffn"));
}

// Runs of full rate: tiles of 128 rows in DeepGEMM, of 64 in Triton. Smaller ones wait for memory
// and draw what busy processors do.
std::vector<Call> calls_of(const std::string& file_name, double tile) {
  std::ifstream file(std::filesystem::path(ORRERY_SOURCE_DIR) / "validation" / "measurements" /
                     "block_products" / file_name);
  REQUIRE(file);
  std::vector<Call> calls;
  for (std::string text; std::getline(file, text);) {
    const JsonValue line = JsonValue::parse(text, file_name);
    if (line.at("record").text() != "sample" || line.at("mode").text() != "sustained") continue;
    if (line.at("tile").number() != tile) continue;
    const auto rows = line.find("rows");
    calls.push_back({.kernels = kernels_of(line),
                     .name = fmt::format("{} {} {}", line.at("kind").text(),
                                         line.at("variant").text(), rows ? rows->number() : 0),
                     .seconds = 1e-6 * line.at("time_us").number(),
                     .watts = line.at("power_w").number()});
  }
  return calls;
}

// What tensor work and traffic of a kernel draw, whatever its curve says how long it takes.
double joules(const Kernel& kernel, const Machine& machine) {
  const Work& w = kernel.work;
  const Curve& curve = machine.calibration.curve(w.kind, w.input, kernel.library);
  const auto& per_flop = machine.calibration.tensor_energy[static_cast<std::size_t>(w.input)];
  const double filling =
      w.filled_m > 0 ? static_cast<double>(w.filled_m) / static_cast<double>(w.m) : 1;
  const auto size = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a * b); };
  const double bytes =
      static_cast<double>(w.groups) * (size(w.m, w.k) + size(w.n, w.k) + 2 * size(w.m, w.n));
  return tensor_flop(w) * filling * per_flop.get().si() * curve.energy_factor +
         bytes * machine.calibration.memory_energy.get().si();
}

TEST_CASE("tiles that hold few rows draw as full ones do") {
  const Machine h200("h200-sxm");
  WorstRows worst;
  std::vector<double> errors;
  for (const auto& [name, tile] : {std::pair{"h200.jsonl", 128.0}, {"h200_experts.jsonl", 64.0}})
    for (const Call& call : calls_of(name, tile)) {
      double found = h200.device.idle_power.si();
      for (const Kernel& k : call.kernels) found += joules(k, h200) / call.seconds;
      const double error = 100 * std::abs(found / call.watts - 1);
      INFO(fmt::format("{}: {:.0f} W, predicted {:.0f}", call.name, call.watts, found));
      CHECK(error < 22);
      worst.add(call.name + ", W", found, call.watts, error, "%");
      errors.push_back(error);
    }
  worst.print("FP8 products in blocks at the limit of an H200");
  REQUIRE(errors.size() == 19);
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] < 4);
}

TEST_CASE("energy goes with the rows in tiles, time does not") {
  const Machine h200("h200-sxm");
  Kernel product = experts(Library::trtllm_experts, 128, 32, 128, 7168, 2048).front();
  const KernelTime full = h200.time(product);
  product.work.filled_m = product.work.m;
  const KernelTime plain = h200.time(product);
  CHECK(full.time == plain.time);
  CHECK(full.energy > 1.2 * plain.energy);
  CHECK(full.tensor == full.energy);  // all of it goes with the clock
  CHECK(plain.tensor == Joules(0));   // what busy processors draw does not
}

}  // namespace
}  // namespace orrery
