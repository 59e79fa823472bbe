// SPDX-License-Identifier: Apache-2.0
// Tests products off the 16-byte grid against what an H200 took for them, in all three layouts.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/fit/score.h"
#include "sim/calibrate/log/measured_tables.h"

namespace orrery {
namespace {

struct Case {
  Sample sample;
  double predicted = 0;  // seconds
};

std::vector<Case> cases() {
  const Device device = load_device("h200-sxm");
  const ResolvedDevice resolved = device.resolved();
  const Calibration calibration = load_calibration(device);
  const MeasuredLog log =
      read_measured_log({data_root() / "validation/measurements/off_grid/h200.jsonl"});
  std::vector<Case> found;
  for (const Sample& sample : log.samples) {
    if (!sample.is_work) continue;
    const OperatorRow row = measured_row(sample, resolved.l2_capacity);
    found.push_back({.sample = sample, .predicted = predict(row, resolved, calibration).si()});
  }
  return found;
}

double error_of(const Case& c) { return std::abs(c.predicted / c.sample.time.si() - 1); }

TEST_CASE("products off the grid take what they took on an H200, by layout and format") {
  std::map<std::string, std::vector<double>> errors;
  for (const Case& c : cases()) {
    const Work& work = c.sample.kernel.work;
    const char* roles[] = {"forward", "input-gradient", "weight-gradient"};
    errors[std::string(to_text(work.input)) + " " + roles[static_cast<int>(work.role)]].push_back(
        error_of(c));
  }
  CHECK(errors.size() == 4);
  for (auto& [name, found] : errors) {
    INFO(name << " median " << median(found) << " p90 " << percentile(found, 90));
    CHECK(median(found) < 0.08);
    CHECK(percentile(found, 90) < 0.18);
  }
}

// The tokens are k of a weight gradient and lie along no row of it (findings: a sequence of 8,193
// tokens).
TEST_CASE("a token more or less costs a weight gradient of an H200 at most a hundredth") {
  const auto tokens = [](const Case& c) { return c.sample.kernel.work.k; };
  int seen = 0;
  for (const Case& c : cases()) {
    const Work& work = c.sample.kernel.work;
    if (work.role != GemmRole::weight_gradient || work.m != 8192 || work.n != 8192) continue;
    if (std::abs(tokens(c) - 8192) != 1) continue;
    INFO(c.sample.shape);
    CHECK(c.sample.time.si() < 1.02 * 1365.49e-6);  // the same with 8,192 tokens
    CHECK(error_of(c) < 0.05);
    ++seen;
  }
  CHECK(seen == 2);
}

}  // namespace
}  // namespace orrery
