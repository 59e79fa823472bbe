// SPDX-License-Identifier: Apache-2.0
// Finds kernels outside the regions of their curves and widens what they are predicted with.
#include "sim/outcome/extrapolation.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw_models/kernel/kernel_time.h"
#include "sim/base/sorting.h"
#include "sim/base/text/words.h"
#include "sim/engine/step/kernels.h"

namespace orrery {
namespace {

// What a step spends with one curve.
struct Use {
  double seconds = 0, outside = 0;  // all, and of kernels outside or of another library
  double weighted = 0;              // seconds times the error of what is outside
  double most = 0;                  // seconds times octaves and error of the kernel that has most
  Work worst;
  std::string stands_in_for;
};

// A head larger than all that were measured is another kernel's, or nobody's: PyTorch on an H200
// takes 20 times what its curve of heads of 128 says where latents of 576 fall back to its plain
// products (validation/measurements/split_decode), 3 for each of the 2.2 octaves.
constexpr double larger_head = 3;
// How decode's parts and rounds fall out changes more with each octave than a fit's inner rows
// tell: nine of ten of all committed curves grow by less.
constexpr double least_of_decode = 0.044;
// Three engines' decode at equal shapes on H100 and H200: the slowest over the fastest, 90th
// percentile of 2,064 shapes each (aiconfigurator's tables).
constexpr double between_libraries = 0.8;

bool stands_in(const Curve& curve, const Kernel& kernel) {
  return kernel.work.kind == WorkKind::attention_decode &&
         (curve.library != kernel.library || curve.kind != kernel.work.kind);
}

// Relative error that a kernel outside gets, beyond its curve's own.
double error_outside(const Curve& curve, const Kernel& kernel) {
  const Work& work = kernel.work;
  double error = stands_in(curve, kernel) ? between_libraries : 0;
  for (const Extent& extent : curve.quality.region.extents) {
    const bool decode = work.kind == WorkKind::attention_decode;
    const bool head = extent.axis == Axis::qk_dim && *position(work, extent.axis) > extent.high;
    const double known = curve.quality.region.per_octave;
    error += octaves_outside(work, extent) * (head     ? larger_head
                                              : decode ? std::max(known, least_of_decode)
                                                       : known);
  }
  return error;
}

std::vector<Use> uses_of_curves(const StepContext& context, const std::vector<UsedKernel>& used) {
  const Calibration& calibration = context.calibration;
  std::vector<Use> uses(calibration.curves.size());
  for (const UsedKernel& u : used) {
    const Work& work = u.kernel.work;
    const Curve& curve = calibration.curve(work.kind, work.input, u.kernel.library);
    if (!curve.quality.region.known()) continue;
    Use& use = uses[static_cast<std::size_t>(&curve - calibration.curves.data())];
    const double seconds = u.count * kernel_time(u.kernel, context.device, calibration).time.si();
    use.seconds += seconds;
    const double octaves = octaves_outside(work, curve.quality.region);
    if (octaves <= 0 && !stands_in(curve, u.kernel)) continue;
    const double error = error_outside(curve, u.kernel);
    use.outside += seconds;
    use.weighted += seconds * error;
    if (seconds * (octaves + error) <= use.most) continue;
    use.most = seconds * (octaves + error);
    use.worst = work;
    if (stands_in(curve, u.kernel)) use.stands_in_for = to_text(u.kernel.library);
  }
  return uses;
}

Extrapolation describe(const Curve& curve, const Use& use) {
  const Region& region = curve.quality.region;
  Extrapolation e{.curve = Calibration::name(curve),
                  .stands_in_for = use.stands_in_for,
                  .sides = {},
                  .octaves = octaves_outside(use.worst, region),
                  .share = use.outside / use.seconds,
                  .per_octave = region.per_octave,
                  .growth = use.weighted / use.seconds};
  for (const Extent& extent : region.extents)
    if (octaves_outside(use.worst, extent) > 0)
      e.sides.push_back({.axis = extent.axis,
                         .used = *position(use.worst, extent.axis),
                         .low = extent.low,
                         .high = extent.high});
  return e;
}

std::string amount(double value, Axis axis) {
  if (axis == Axis::bytes) return to_text(Bytes(value));
  return fmt::format("{:.0f}", value);
}

}  // namespace

std::vector<Extrapolation> find_extrapolations(const StepContext& context, const Model& model,
                                               const Job& job, const Layout& layout,
                                               const Stack& stack) {
  const std::vector<Curve>& curves = context.calibration.curves;
  if (std::none_of(curves.begin(), curves.end(),
                   [](const Curve& c) { return c.quality.region.known(); }))
    return {};
  const std::vector<Use> uses =
      uses_of_curves(context, step_kernels(context, model, job, layout, stack));
  std::vector<Extrapolation> found;
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (uses[i].outside > 0) found.push_back(describe(curves[i], uses[i]));
  sort_stably(found,
              [](const Extrapolation& a, const Extrapolation& b) { return a.growth > b.growth; });
  return found;
}

std::vector<std::string> used_curves(const StepContext& context, const Model& model, const Job& job,
                                     const Layout& layout, const Stack& stack) {
  const Calibration& calibration = context.calibration;
  std::vector<bool> used(calibration.curves.size());
  for (const UsedKernel& u : step_kernels(context, model, job, layout, stack)) {
    const Curve& curve =
        calibration.curve(u.kernel.work.kind, u.kernel.work.input, u.kernel.library);
    used[static_cast<std::size_t>(&curve - calibration.curves.data())] = true;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) names.push_back(Calibration::name(calibration.curves[i]));
  return names;
}

void widen_extrapolated(Calibration& calibration, const std::vector<Extrapolation>& found) {
  for (const Extrapolation& e : found) {
    if (e.growth <= 0) continue;
    for (Curve& curve : calibration.curves) {
      if (Calibration::name(curve) != e.curve) continue;
      Sourced<double>& scale = curve.scale;
      const double value = scale.get();
      // A ratio: twice as slow and twice as fast are as far from what was measured.
      scale.low = std::min(scale.low.value_or(value), value) / (1 + e.growth);
      scale.high = std::max(scale.high.value_or(value), value) * (1 + e.growth);
      if (!is_uncertain(scale.evidence)) scale.evidence = Evidence::estimated;
      scale.reason = "used outside the region in which it was measured";
    }
  }
}

std::string to_text(const Extrapolation& e) {
  std::string text = e.curve + ": ";
  if (!e.stands_in_for.empty())
    text += fmt::format("stands in for {}{}", e.stands_in_for, e.sides.empty() ? "" : "; ");
  for (std::size_t i = 0; i < e.sides.size(); ++i) {
    const Extrapolation::Side& side = e.sides[i];
    text += fmt::format("{}{} {}, measured {} to {}", i > 0 ? "; " : "", to_text(side.axis),
                        amount(side.used, side.axis), amount(side.low, side.axis),
                        amount(side.high, side.axis));
  }
  text += fmt::format(" ({} of the curve's time", short_percent(e.share));
  if (e.growth > 0) text += fmt::format(", range {} wider", short_percent(e.growth));
  return text + ")";
}

}  // namespace orrery
