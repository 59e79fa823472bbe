// SPDX-License-Identifier: Apache-2.0
// Tests whether a slow GPU is told from a healthy one, and whether the cause is named.
#include <catch2/catch.hpp>

#include <tuple>

#include "hw_models/catalog.h"
#include "tests/base/scratch_folder.h"
#include "tests/calibrate/doctored_log.h"

namespace orrery {
namespace {

using test::Doctor;

MeasuredLog log_of(const Doctor& doctor) {
  const ScratchFolder scratch("health");
  return read_measured_log({scratch.add("all.jsonl", test::doctored_log(doctor))});
}

HealthReport against_log(const Doctor& doctor) {
  const MeasuredLog mine = log_of(doctor), other = log_of({.seed = 99});
  return check_health(mine, expect_log("h200-sxm", other), load_device("h200-sxm"));
}

// A model whose curves were all fitted to within 3% of what they never saw.
Machine fitted_machine() {
  Machine machine = load_machine("h200-sxm", false);
  for (Curve& curve : machine.calibration.curves) {
    curve.scale.evidence = Evidence::measured;
    curve.quality = {.fitted = 100, .held_out = 40, .median = 0.03, .p90 = 0.08};
  }
  return machine;
}

HealthReport against_model(const Doctor& doctor) {
  const Machine machine = fitted_machine();
  return check_health(log_of(doctor), expect_model("h200-sxm", machine), load_device("h200-sxm"));
}

const HealthLine* line(const HealthReport& report, const std::string& question) {
  for (const HealthLine& l : report.lines)
    if (l.question == question) return &l;
  return nullptr;
}

std::string joined(const HealthReport& report) {
  std::string text;
  for (const std::string& finding : report.findings) text += finding + "\n";
  return text;
}

bool says(const HealthReport& report, const std::string& words) {
  return joined(report).find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a GPU like the calibrated one is healthy, at any draw of 2% of noise", "[health]") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const HealthReport& report : {against_log({.noise = 0.02, .seed = seed}),
                                       against_model({.noise = 0.02, .seed = seed})}) {
      INFO(joined(report));
      CHECK(report.healthy());
      CHECK(report.lines.size() > 12);
    }
}

TEST_CASE("clocks that are 10% low are found, and named as the cause", "[health]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Doctor slow{.compute = 0.9, .clock = 0.9, .noise = 0.02, .seed = seed};
    for (const HealthReport& report : {against_log(slow), against_model(slow)}) {
      INFO(joined(report));
      CHECK_FALSE(report.healthy());
      CHECK(says(report, "SM clock 10% low: 1782 MHz of 1980 MHz"));
      CHECK(says(report, "compute"));
      CHECK_FALSE(says(report, "memory bandwidth"));
      const HealthLine* products = line(report, "bf16 products, burst");
      REQUIRE(products != nullptr);
      CHECK(products->verdict == HealthVerdict::slow);
      CHECK(products->ratio == Approx(0.9).margin(0.03));
    }
  }
}

TEST_CASE("memory that is 10% low is found, and compute is not blamed", "[health]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Doctor slow{.memory = 0.9, .noise = 0.02, .seed = seed};
    for (const HealthReport& report : {against_log(slow), against_model(slow)}) {
      INFO(joined(report));
      CHECK(report.findings.size() == 1);
      CHECK(says(report, "memory bandwidth"));
      CHECK(line(report, "memory copy")->ratio == Approx(0.9).margin(0.03));
      CHECK(line(report, "bf16 products, burst")->verdict == HealthVerdict::as_expected);
    }
  }
}

TEST_CASE("the cause follows from what else is low", "[health]") {
  // Full clocks and slow products: something else runs there, or other kernels.
  CHECK(says(against_log({.compute = 0.9}), "at full clocks"));
  CHECK(says(against_log({.compute = 0.85, .clock = 0.85, .power_limit_w = 500}),
             "power limit is set to 500 W of 700 W"));
  CHECK(says(against_log({.compute = 0.85, .clock = 0.85, .temperature_c = 88}), "88 C"));
  CHECK(says(against_log({.power_limit_w = 500}), "power limit"));
  CHECK(says(against_log({.host_link = 0.5}), "half the lanes"));
  CHECK(says(against_log({.peers = 0.7}), "collectives 30% low"));
  // Faster is no fault.
  CHECK(against_log({.compute = 1.1}).healthy());
  CHECK(line(against_log({.compute = 1.1}), "bf16 products, burst")->verdict ==
        HealthVerdict::fast);
}

// A launch question as the kit asks it; modelled logs have none of the host's.
Sample launch(const std::string& variant, double seconds) {
  Sample s;
  s.kind = "launch";
  s.variant = s.shape = variant;
  s.time = s.low = s.high = Seconds(seconds);
  return s;
}

TEST_CASE("a healthy GPU on another host is not suspect for the host's processor", "[health]") {
  // As measured on two healthy H200 machines: an event is recorded in 0.225 us and in 0.126 us.
  for (const auto& [question, mine, other] :
       {std::tuple("event-record", 0.225e-6, 0.126e-6), std::tuple("host-queue", 9e-6, 2e-6),
        std::tuple("stream-sync", 8e-6, 3e-6)}) {
    MeasuredLog here = log_of({}), there = log_of({.seed = 7});
    here.samples.push_back(launch(question, mine));
    there.samples.push_back(launch(question, other));
    const HealthReport report = check_health(here, expect_log("b", there), load_device("h200-sxm"));
    INFO(joined(report) << question);
    CHECK(report.healthy());
    REQUIRE(report.host_findings.size() == 1);
    CHECK(report.host_findings.front().find(question) != std::string::npos);
    // A faster host is not worth a word, and a device's own latency is no question of the host.
    CHECK(
        check_health(there, expect_log("b", here), load_device("h200-sxm")).host_findings.empty());
  }
  MeasuredLog here = log_of({}), there = log_of({.seed = 7});
  here.samples.push_back(launch("graph-node", 4e-6));
  there.samples.push_back(launch("graph-node", 1e-6));
  CHECK_FALSE(check_health(here, expect_log("b", there), load_device("h200-sxm")).healthy());
}

TEST_CASE("more power, higher clocks and shorter latencies are no faults", "[health]") {
  MeasuredLog here = log_of({}), there = log_of({.seed = 7});
  for (Sample& s : here.samples) {
    s.power_w *= 1.09;
    if (s.kind == "launch") s.time = s.time * 0.5;
  }
  here.samples.push_back(launch("graph-node", 1e-6));
  there.samples.push_back(launch("graph-node", 1.75e-6));
  const HealthReport report = check_health(here, expect_log("b", there), load_device("h200-sxm"));
  INFO(joined(report));
  CHECK(report.healthy());
  CHECK(report.host_findings.empty());
  CHECK(line(report, "power, sustained products")->verdict == HealthVerdict::fast);
  for (const HealthLine& l : report.lines) CHECK_FALSE(l.against_gpu());
}

TEST_CASE("another model of the board is called that, whatever else differs") {
  MeasuredLog mine = log_of({.compute = 0.95, .memory = 0.7});
  const MeasuredLog other = log_of({.seed = 7});
  for (RunConditions& c : mine.conditions) c.device = "NVIDIA H100 80GB HBM3";
  const HealthReport report = check_health(mine, expect_log("b", other), load_device("h200-sxm"));
  REQUIRE_FALSE(report.healthy());
  CHECK(report.findings.front() ==
        "another model of the board: NVIDIA H100 80GB HBM3 against NVIDIA H200");
  CHECK_FALSE(says(check_health(other, expect_log("b", other), load_device("h200-sxm")), "model"));
}

TEST_CASE("a model's own error widens what is as expected", "[health]") {
  Machine machine = fitted_machine();
  for (Curve& curve : machine.calibration.curves) curve.quality.median = 0.2;
  const MeasuredLog mine = log_of({.memory = 0.9});
  const Device device = load_device("h200-sxm");
  CHECK(check_health(mine, expect_model("m", machine), device).healthy());
  // What was measured on another machine does not have that error.
  const MeasuredLog other = log_of({.seed = 7});
  CHECK_FALSE(check_health(mine, expect_log_or_model("m", other, machine), device).healthy());
}

TEST_CASE("one outlier does not move a question", "[health]") {
  MeasuredLog mine = log_of({.noise = 0});
  const MeasuredLog other = log_of({.noise = 0});
  for (Sample& s : mine.samples)
    if (s.kind == "gemm" && s.mode == "burst") {
      s.time = s.time * 3;
      break;
    }
  CHECK(check_health(mine, expect_log("b", other), load_device("h200-sxm")).healthy());
}

TEST_CASE("what only one side measured is no question", "[health]") {
  const MeasuredLog mine = log_of({});
  MeasuredLog other = mine;
  std::erase_if(other.samples, [](const Sample& s) { return s.kind == "copy"; });
  const HealthReport report = check_health(mine, expect_log("b", other), load_device("h200-sxm"));
  CHECK(line(report, "memory copy") == nullptr);
  CHECK(line(report, "bf16 products, burst") != nullptr);
}

}  // namespace orrery
