// SPDX-License-Identifier: Apache-2.0
// Joins trials, limits and present kernels into a judgement.
#include "sim/calibrate/kernel/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hw_models/kernel/kernel_time.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/kernel/feedback.h"

namespace orrery {
namespace {

constexpr double quarter = 25, half = 50, three_quarters = 75;
// Clocks and counters leave a doubt of some percent; what is faster than that cannot be.
constexpr double doubt = 1.05;

Library usual_library(const KernelSpec& spec) {
  if (is_product(spec.kind))
    return spec.kind == WorkKind::gemm ? Library::cublas : Library::grouped_gemm;
  return is_attention(spec.kind) ? Library::cudnn_attention : Library::fused;
}

void add_present(ShapeJudgement& out, const std::vector<PresentTimes>& present) {
  for (const PresentTimes& kernel : present)
    for (const KernelTiming& timing : kernel.timed) {
      if (timing.shape != out.shape || !timing.ok || timing.cold.empty()) continue;
      const double middle = percentile(timing.cold, half);
      if (out.present && *out.present <= middle) continue;
      out.present = middle;
      out.present_low = percentile(timing.cold, quarter);
      out.present_high = percentile(timing.cold, three_quarters);
      out.present_name = kernel.name;
    }
  if (out.present || !out.calibrated) return;
  out.present = out.present_low = out.present_high = *out.calibrated;
  out.present_name = "the device's calibration";
}

ShapeJudgement judge_shape(const KernelSpec& spec, const KernelTiming& timing,
                           const std::vector<PresentTimes>& present, const KernelMachine* machine) {
  ShapeJudgement out{.shape = timing.shape, .mhz = timing.mhz};
  out.cold = percentile(timing.cold, half);
  out.low = percentile(timing.cold, quarter);
  out.high = percentile(timing.cold, three_quarters);
  if (!timing.warm.empty()) out.warm = percentile(timing.warm, half);
  if (machine != nullptr) {
    const Work work = work_of(spec, timing.shape);
    out.limit = limit_of(work, machine->device);
    out.calibrated = kernel_time({.work = work, .library = usual_library(spec)}, machine->device,
                                 machine->calibration)
                         .time.si();
  }
  add_present(out, present);
  return out;
}

// Of what every shape has; nothing where one lacks it.
template <class Value>
std::optional<double> geometric_mean(const std::vector<ShapeJudgement>& shapes, Value value) {
  double sum = 0;
  for (const ShapeJudgement& shape : shapes) {
    const double one = value(shape);
    if (!(one > 0)) return std::nullopt;
    sum += std::log(one);
  }
  if (shapes.empty()) return std::nullopt;
  return std::exp(sum / static_cast<double>(shapes.size()));
}

void add_speed(KernelJudgement& out) {
  using Shape = ShapeJudgement;
  out.time = geometric_mean(out.shapes, [](const Shape& s) { return s.cold; });
  out.warm = geometric_mean(out.shapes, [](const Shape& s) { return s.warm; });
  out.of_roofline = geometric_mean(
      out.shapes, [](const Shape& s) { return s.limit ? s.limit->seconds / s.cold : 0; });
  const auto middle = geometric_mean(
      out.shapes, [](const Shape& s) { return s.present ? *s.present / s.cold : 0; });
  const auto low = geometric_mean(
      out.shapes, [](const Shape& s) { return s.present ? s.present_low / s.high : 0; });
  const auto high = geometric_mean(
      out.shapes, [](const Shape& s) { return s.present ? s.present_high / s.low : 0; });
  if (middle && low && high) out.speed = KernelSpeed{*middle, *low, *high};
  // The candidate's slower quartile: noise cannot be mined.
  const auto sure = geometric_mean(
      out.shapes, [](const Shape& s) { return s.present ? *s.present / s.high : 0; });
  out.reward = kernel_reward(out.correct, sure.value_or(0));
}

std::string first_failure(const KernelTrial& trial) {
  for (const KernelCase& one : trial.cases)
    if (!one.ok) return one.failure;
  for (const KernelTiming& one : trial.timed)
    if (!one.ok) return one.failure;
  return trial.failure.empty() ? "nothing was timed" : trial.failure;
}

}  // namespace

double kernel_reward(bool correct, double speed) {
  return correct && speed > 0 ? speed / (1 + speed) : 0;
}

KernelJudgement judge_kernel(const KernelSpec& spec, const std::string& file,
                             const BuiltKernel& built, const KernelTrial& trial,
                             const std::vector<PresentTimes>& present,
                             const KernelMachine* machine) {
  KernelJudgement out{.file = file, .compiled = built.compiled, .built = built, .trial = trial};
  out.correct = built.compiled && trial.right();
  if (built.compiled && !trial.no_device && !out.correct) out.wrong = first_failure(trial);
  for (const KernelTiming& timing : trial.timed) {
    if (!timing.ok || timing.cold.empty()) continue;
    out.shapes.push_back(judge_shape(spec, timing, present, machine));
    const ShapeJudgement& shape = out.shapes.back();
    if (!shape.limit || shape.cold * doubt >= shape.limit->seconds) continue;
    out.correct = false;
    out.wrong =
        fmt::format("{:.3g} us is less than the device can take for {}: {:.3g} us",
                    1e6 * shape.cold, shape_text(spec, shape.shape), 1e6 * shape.limit->seconds);
  }
  if (out.correct) add_speed(out);
  out.feedback = kernel_feedback(spec, out, machine);
  return out;
}

}  // namespace orrery
