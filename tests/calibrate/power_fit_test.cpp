// SPDX-License-Identifier: Apache-2.0
// Tests fits of energies: known ones come back within their stated errors, real ones where they
// were found by hand, and the model that reads them draws what was measured.
#include "sim/calibrate/fit/power_fit.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"
#include "hw_models/power.h"
#include "sim/base/json/json.h"
#include "sim/base/random.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

Sample power_sample(const std::string& variant, const std::string& input, double flop, double bytes,
                    double seconds, double watts, bool occupied = true) {
  Sample s;
  s.part = s.kind = "power";
  s.variant = variant;
  s.mode = "sustained";
  s.time = s.low = s.high = Seconds(seconds);
  s.power_w = watts;
  s.texts = {{"input", input}};
  s.numbers = {{"flop", flop}, {"bytes", bytes}, {"occupied", occupied ? 1.0 : 0.0}};
  return s;
}

struct Truth {
  double bf16, fp8, byte, busy;  // J/FLOP, J/FLOP, J/B, W over idle
};

// What a board with these energies would show at random rates, read with noise.
MeasuredLog board(const Truth& truth, double idle, double noise, std::uint64_t seed) {
  RandomStream random(seed, 0);
  MeasuredLog log;
  log.conditions.push_back({.program = "power", .device = "NVIDIA H200"});
  const auto add = [&](const std::string& input, double flop_rate, double byte_rate) {
    const double tensor = flop_rate * (input == "fp8" ? truth.fp8 : truth.bf16);
    const double over = std::max(tensor, truth.busy) + byte_rate * truth.byte;
    const double seconds = 1e-4 * (1 + 20 * random.uniform());
    log.samples.push_back(power_sample("case", input, flop_rate * seconds, byte_rate * seconds,
                                       seconds, (idle + over) * (1 + noise * random.normal(0, 1))));
  };
  for (int i = 0; i < 6; ++i) add("bf16", (550 + 150 * random.uniform()) * 1e12, 3e11);
  for (int i = 0; i < 4; ++i) add("fp8", (1000 + 250 * random.uniform()) * 1e12, 4e11);
  for (int i = 0; i < 8; ++i) add("fp32", 0, 4.2e12 * random.uniform());
  // Decode's products wait for the memory: busy, whatever their operations.
  for (int i = 0; i < 2; ++i) add("bf16", 5e13, 3.8e12 * random.uniform());
  log.samples.push_back(power_sample("idle", "fp32", 0, 0, 1, idle, false));
  return log;
}

TEST_CASE("known energies come back within their stated errors") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  const double idle = device.idle_power.si(), budget = device.power_limit.si() - idle;
  int asked = 0, near = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    RandomStream random(seed, 1);
    const auto about = [&](double middle) { return middle * (0.7 + 0.6 * random.uniform()); };
    const Truth truth{about(0.9e-12), about(0.5e-12), about(25e-12), about(350)};
    const PowerFit fit = fit_power(board(truth, idle, 0.01, seed), device);
    const auto check = [&](const FittedValue& found, double expected, double tolerance) {
      REQUIRE(found.known());
      CHECK(std::abs(found.value / expected - 1) < tolerance);
      ++asked;
      near += std::abs(found.value - expected) < 3 * found.error ? 1 : 0;
    };
    check(fit.tensor_energy[static_cast<std::size_t>(Format::bf16)], truth.bf16, 0.05);
    check(fit.tensor_energy[static_cast<std::size_t>(Format::fp8)], truth.fp8, 0.05);
    check(fit.memory_energy, truth.byte, 0.4);
    check(fit.busy_share, truth.busy / budget, 0.05);
    CHECK(fit.held_out == 20);
    CHECK(fit.median < 0.02);
    CHECK(fit.p90 < 0.04);
    CHECK(fit.idle_power.value == Approx(idle));
    CHECK_FALSE(fit.tensor_energy[static_cast<std::size_t>(Format::int8)].known());
  }
  // Errors are neither too small nor so large that they say nothing.
  CHECK(near >= asked * 95 / 100);
  const PowerFit quiet = fit_power(board({0.9e-12, 0.5e-12, 25e-12, 350}, idle, 0.01, 1), device);
  CHECK(quiet.busy_share.error < 0.05 * quiet.busy_share.value);
  CHECK(quiet.memory_energy.error < 0.3 * quiet.memory_energy.value);
}

TEST_CASE("work that leaves processors waiting is shown, not fitted") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  const Truth truth{0.9e-12, 0.5e-12, 25e-12, 350};
  MeasuredLog log = board(truth, device.idle_power.si(), 0.01, 3);
  const PowerFit before = fit_power(log, device);
  log.samples.push_back(power_sample("spin", "fp32", 0, 1e6, 1e-3, 200, false));
  const PowerFit after = fit_power(log, device);
  CHECK(after.busy_share.value == before.busy_share.value);
  REQUIRE(after.rows.size() == before.rows.size() + 1);
  CHECK_FALSE(after.rows.back().fitted);
  CHECK(after.rows.back().predicted.si() > 300);
  log.samples.back().numbers["occupied"] = 1;
  CHECK(fit_power(log, device).busy_share.value < 0.98 * before.busy_share.value);
  // Registers that nothing changes say nothing of kernels that have data.
  log.samples.back().numbers["bytes"] = 0;
  CHECK(fit_power(log, device).busy_share.value == before.busy_share.value);
}

TEST_CASE("sustained products check what the power program tells, and tell what it does not") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  MeasuredLog log = board({0.9e-12, 0.5e-12, 25e-12, 350}, device.idle_power.si(), 0.01, 3);
  const PowerFit before = fit_power(log, device);
  Sample s;
  s.kind = "gemm";
  s.mode = "sustained";
  s.is_work = true;
  s.kernel.work = {.kind = WorkKind::gemm, .m = 8192, .n = 8192, .k = 8192};
  s.time = s.low = s.high = Seconds(1e-3);
  s.power_w = 690;
  log.samples.push_back(s);
  const PowerFit same = fit_power(log, device);
  const auto bf16 = static_cast<std::size_t>(Format::bf16);
  CHECK(same.tensor_energy[bf16].value == before.tensor_energy[bf16].value);
  CHECK_FALSE(same.rows.back().fitted);
  log.samples.back().kernel.work.input = Format::int8;
  CHECK(fit_power(log, device).tensor_energy[static_cast<std::size_t>(Format::int8)].n == 1);
}

TEST_CASE("boards that differ widen what is stated") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  const Truth truth{0.9e-12, 0.5e-12, 25e-12, 350};
  const double idle = device.idle_power.si();
  MeasuredLog log = board(truth, idle, 0.003, 3);
  const PowerFit one = fit_power(log, device);
  CHECK(one.runs == 1);
  Truth leaky = truth;
  leaky.busy *= 1.2;
  MeasuredLog other = board(leaky, idle, 0.003, 4);
  for (Sample& s : other.samples) s.conditions = 1;
  log.conditions.push_back(other.conditions.front());
  log.samples.insert(log.samples.end(), other.samples.begin(), other.samples.end());
  const PowerFit both = fit_power(log, device);
  CHECK(both.runs == 2);
  CHECK(both.busy_share.error > 3 * one.busy_share.error);
  CHECK(both.busy_share.value == Approx(1.1 * one.busy_share.value).epsilon(0.05));
  CHECK(both.busy_share.error == Approx(0.14 * one.busy_share.value).epsilon(0.3));
}

TEST_CASE("without busy work the energy of a byte stays unknown") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  MeasuredLog log;
  log.samples.push_back(power_sample("gemm", "bf16", 1.1e12, 4e8, 1.66e-3, 690));
  log.samples.push_back(power_sample("gemm", "bf16", 9.6e11, 5e8, 1.44e-3, 691));
  const PowerFit fit = fit_power(log, device);
  CHECK(fit.tensor_energy[static_cast<std::size_t>(Format::bf16)].n == 2);
  CHECK_FALSE(fit.memory_energy.known());
  CHECK_FALSE(fit.busy_share.known());
  Calibration calibration;
  put(fit, calibration, "orrery-h200-power");
  CHECK(calibration.tensor_energy[static_cast<std::size_t>(Format::bf16)].known());
  CHECK_FALSE(calibration.memory_energy.known());
  CHECK_THROWS_WITH(fit_power({}, device), Contains("power"));
  ResolvedDevice unlimited = device;
  unlimited.power_limit = Watts();
  CHECK_THROWS_WITH(fit_power(log, unlimited), Contains("power.limit"));
}

// The lines of an earlier program, which had other keys and named formats in words.
MeasuredLog earlier_lines() {
  MeasuredLog log;
  std::ifstream file(std::filesystem::path(ORRERY_SOURCE_DIR) / "validation" / "measurements" /
                     "h200_power.jsonl");
  for (std::string text; std::getline(file, text);) {
    const JsonValue line = JsonValue::parse(text, "h200_power.jsonl");
    const std::string name = line.at("name").text();
    // Attention and whole layers do several kinds of work.
    const bool product = name.find("gemm") == 0;
    if (!product && line.has("flop") && name.find("arithmetic") != 0) continue;
    if (name.find("cache") != std::string::npos) continue;
    const std::string format = product ? name.substr(5, name.find(' ', 5) - 5) : "fp32";
    const auto number = [&](const char* key) {
      const auto at = line.find(key);
      return at ? at->number() : 0.0;
    };
    log.samples.push_back(power_sample(name, format, number("flop"), number("bytes"),
                                       number("sustained_s"), number("power_w")));
  }
  return log;
}

TEST_CASE("a measured H200 gives the energies that were found by hand") {
  const Device catalogued = load_device("h200-sxm");
  const ResolvedDevice device = catalogued.resolved();
  const PowerFit fit = fit_power(earlier_lines(), device);
  const auto energy = [&](Format f) { return fit.tensor_energy[static_cast<std::size_t>(f)]; };
  CHECK(energy(Format::bf16).n == 3);
  CHECK(energy(Format::bf16).value == Approx(0.91e-12).epsilon(0.04));
  CHECK(energy(Format::fp16).value == Approx(0.95e-12).epsilon(0.04));
  CHECK(energy(Format::fp8).value == Approx(0.51e-12).epsilon(0.05));
  CHECK(fit.memory_energy.value > 10e-12);
  CHECK(fit.memory_energy.value < 40e-12);
  CHECK(fit.busy_share.value == Approx(0.807).epsilon(0.04));
  CHECK(fit.median < 0.06);
  CHECK(fit.p90 < 0.15);

  // The model that reads them draws what was measured: a cube at the rate it was seen at.
  Calibration calibration = load_calibration(catalogued);
  put(fit, calibration, "orrery-h200-power");
  const Kernel cube{.work = {.kind = WorkKind::gemm, .m = 8192, .n = 8192, .k = 8192}};
  const Joules spent = kernel_time(cube, device, calibration).energy;
  const double factor =
      calibration.curve(WorkKind::gemm, Format::bf16, Library::cublas).energy_factor;
  const double drawn = device.idle_power.si() + spent.si() / factor / 0.0016590718;
  CHECK(drawn == Approx(692).epsilon(0.03));
}

}  // namespace
}  // namespace orrery
