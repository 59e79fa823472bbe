// SPDX-License-Identifier: Apache-2.0
// Knows whether a GPU does what is expected of it: measured against expected, question by question.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/calibrate/health/expected_time.h"
#include "sim/calibrate/log/measured_log.h"

namespace orrery {

// What decides the answer to a question, for the search of causes.
enum class HealthTopic : std::uint8_t {
  compute,    // products and attention in bursts
  sustained,  // the same for seconds
  memory,
  cache,
  launch,
  host_launch,
  host_link,
  peer_link,
  collective,
  clock,            // of the SMs in bursts, MHz
  sustained_clock,  // of the SMs for seconds, MHz
  memory_clock,
  power_limit,
  power,  // drawn for seconds, W
  idle_power,
};

// Topics whose figure is no speed: what a sensor read or a setting says.
constexpr bool is_sensor(HealthTopic topic) { return topic >= HealthTopic::clock; }

// Topics that the host's processor answers: they tell nothing about the GPU.
constexpr bool asks_host(HealthTopic topic) { return topic == HealthTopic::host_launch; }

enum class HealthVerdict : std::uint8_t { as_expected, slow, fast, unknown };

// One question with its answer. Ratios are of speed where speed is asked (above 1: faster than
// expected), else of the figure itself.
struct HealthLine {
  std::string question;  // "bf16 products, burst"
  HealthTopic topic = HealthTopic::compute;
  std::string unit;  // of `measured` and `expected`: "TFLOP/s", "GB/s", "us", "MHz", "W"
  int samples = 0;   // that both sides know
  double measured = 0, expected = 0;  // medians; expected is measured over the ratio
  double ratio = 1;
  double standard_error = 0;           // of the logarithm of the ratio's median
  double spread = 0;                   // expected between healthy machines, and the model's error
  std::optional<double> of_specified;  // speed over what the datasheet allows
  HealthVerdict verdict = HealthVerdict::unknown;
  // Half of the range around 1 in which a ratio is as expected.
  double tolerance() const;
  // Slower or lower than healthy GPUs are. More than expected is no fault, nor is little power: it
  // explains what is slow and is none of its own.
  bool against_gpu() const {
    return verdict == HealthVerdict::slow && !asks_host(topic) && topic != HealthTopic::power &&
           topic != HealthTopic::idle_power;
  }
};

// What may be wrong, with the GPU and apart from it with its host: "memory bandwidth 10% low: ...",
// most telling first.
struct HealthFindings {
  std::vector<std::string> gpu, host;
};

struct HealthReport {
  std::vector<HealthLine> lines;
  std::vector<std::string> findings;       // of the GPU
  std::vector<std::string> host_findings;  // a slow host makes no GPU suspect
  bool healthy() const { return findings.empty(); }
};

// What samples are held against: another log of the same questions, or a model.
struct Expectation {
  std::string name;
  // Seconds of a sample, and their relative standard error between samples of this question;
  // nullopt where this side does not know.
  std::function<std::optional<Seconds>(const Sample&)> time;
  // Relative spread of a question's median that is no fault: between healthy machines and, for a
  // model, its own error.
  std::function<double(HealthTopic topic, const std::vector<const Sample*>& samples)> spread;
  const MeasuredLog* log = nullptr;  // sensors are held against this log, where there is one
};

// Expectations. The machine and the log must outlive them.
Expectation expect_model(const std::string& name, const Machine& machine);
Expectation expect_log(const std::string& name, const MeasuredLog& log);
// Samples that the log has are held against it, others against the model.
Expectation expect_log_or_model(const std::string& name, const MeasuredLog& log,
                                const Machine& machine);

// `specified`: the device whose datasheet gives HealthLine::of_specified and the limits of clocks
// and power. A question without samples that both sides know has no line.
HealthReport check_health(const MeasuredLog& measured, const Expectation& expected,
                          const Device& specified);

// What a machine's model says of the usual questions, as if measured without noise: to hold one
// calibration against another.
MeasuredLog modelled_log(const Machine& machine);

// Names each sample so that the same question asked of another machine has the same name.
std::string sample_key(const Sample& sample);

// What may be wrong, from what is slow and what is not.
HealthFindings health_findings(const std::vector<HealthLine>& lines, const MeasuredLog& measured,
                               const Expectation& expected, const Device& specified);

}  // namespace orrery
