// Finds kernels outside the regions of their curves and widens what they are predicted with.
#include "sim/outcome/extrapolation.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw_models/kernel_time.h"

namespace orrery {
namespace {

// What a step spends with one curve.
struct Use {
  double seconds = 0, outside = 0;  // all, and of kernels outside
  double weighted = 0;              // seconds times octaves outside
  double most = 0;                  // the same of the kernel that contributes most
  Work worst;
};

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
    if (octaves <= 0) continue;
    use.outside += seconds;
    use.weighted += seconds * octaves;
    if (seconds * octaves <= use.most) continue;
    use.most = seconds * octaves;
    use.worst = work;
  }
  return uses;
}

Extrapolation describe(const Curve& curve, const Use& use) {
  const Region& region = curve.quality.region;
  Extrapolation e{.curve = Calibration::name(curve),
                  .sides = {},
                  .octaves = octaves_outside(use.worst, region),
                  .share = use.outside / use.seconds,
                  .per_octave = region.per_octave,
                  .growth = region.per_octave * use.weighted / use.seconds};
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

std::string percent(double share) {
  return fmt::format("{:.{}f}%", 100 * share, share < 0.0995 ? 1 : 0);
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
    if (uses[i].weighted > 0) found.push_back(describe(curves[i], uses[i]));
  std::stable_sort(found.begin(), found.end(), [](const Extrapolation& a, const Extrapolation& b) {
    return a.growth > b.growth;
  });
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
  for (std::size_t i = 0; i < e.sides.size(); ++i) {
    const Extrapolation::Side& side = e.sides[i];
    text += fmt::format("{}{} {}, measured {} to {}", i > 0 ? "; " : "", to_text(side.axis),
                        amount(side.used, side.axis), amount(side.low, side.axis),
                        amount(side.high, side.axis));
  }
  text += fmt::format(" ({} of the curve's time", percent(e.share));
  if (e.per_octave > 0) text += fmt::format(", range {} wider", percent(e.growth));
  return text + ")";
}

}  // namespace orrery
