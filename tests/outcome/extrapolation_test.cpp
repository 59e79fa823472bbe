// SPDX-License-Identifier: Apache-2.0
// Tests that predictions outside the measured shapes say so and widen, and that others do not.
#include "sim/outcome/extrapolation.h"

#include <catch2/catch.hpp>

#include "hw_models/kernel/kernel_time.h"
#include "sim/engine/step/kernels.h"
#include "sim/engine/step/step.h"
#include "sim/outcome/simulate.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

Scenario training(const Layout& layout, std::int64_t gpus = 16) {
  Scenario s{.cluster = load_cluster("dgx-h200", gpus),
             .model = load_model("llama3-8b", data_root() / "workloads/catalog/models")};
  s.job.sequence = 4096;
  s.job.global_batch = 64;
  s.layout = layout;
  s.stack = load_stack("nemo",
                       {.architecture = std::string(to_text(s.cluster.device.architecture)),
                        .precision = layout.precision,
                        .task = s.job.task},
                       data_root() / "workloads/catalog/stacks");
  for (Curve& curve : s.cluster.calibration.curves) curve.quality.region = {};
  return s;
}

Curve& products(Scenario& s) {
  for (Curve& curve : s.cluster.calibration.curves)
    if (Calibration::name(curve) == "gemm.bf16.cublas") return curve;
  FAIL("no curve of products");
  return s.cluster.calibration.curves.front();
}

// The region of all products that the step runs.
Region used_region(const Scenario& s) {
  Region region;
  for (const UsedKernel& u : step_kernels(step_context(s), s.model, s.job, s.layout, s.stack))
    if (u.kernel.work.kind == WorkKind::gemm) include(region, u.kernel.work);
  return region;
}

Extent& on(Region& region, Axis axis) {
  for (Extent& extent : region.extents)
    if (extent.axis == axis) return extent;
  FAIL("no such axis");
  return region.extents.front();
}

TEST_CASE("curves without a region and kernels inside it say nothing and widen nothing") {
  Scenario s = training({.tp = 2, .pp = 2, .dp = 4});
  const Prediction without = simulate(s, {});
  CHECK(without.extrapolations.empty());
  Region region = used_region(s);
  region.per_octave = 0.5;
  products(s).quality.region = region;
  const Prediction inside = simulate(s, {});
  CHECK(inside.extrapolations.empty());
  CHECK(inside.low == without.low);
  CHECK(inside.high == without.high);
}

TEST_CASE("a kernel outside is named with its axis and widens the range, not the prediction") {
  Scenario s = training({.tp = 2, .pp = 1, .dp = 8});
  const Prediction before = simulate(s, {});
  Region region = used_region(s);
  on(region, Axis::m).high /= 32;
  region.per_octave = 0.1;
  products(s).quality.region = region;
  const Prediction outside = simulate(s, {});
  REQUIRE(outside.extrapolations.size() == 1);
  const Extrapolation& e = outside.extrapolations.front();
  CHECK(e.curve == "gemm.bf16.cublas");
  REQUIRE(e.sides.size() == 1);
  CHECK(e.sides[0].axis == Axis::m);
  CHECK(e.sides[0].high == on(region, Axis::m).high);
  CHECK(e.sides[0].used > e.sides[0].high);
  CHECK(e.share > 0);
  CHECK(e.share <= 1);
  CHECK(e.growth > 0);
  CHECK(e.growth <= 0.1 * 5 + 1e-12);  // nothing lies farther than five octaves outside
  CHECK(outside.step_time == before.step_time);
  CHECK(outside.high > before.high);
  // Under the board's power limit a faster product changes nothing, a slower one does.
  CHECK(outside.low <= before.low);
  const std::string text = to_text(e);
  CHECK(text.find("gemm.bf16.cublas") != std::string::npos);
  CHECK(text.find(": m ") != std::string::npos);
  bool named = false;
  for (const Assumption& a : outside.assumptions)
    named = named || a.path.find("calibration.gemm.bf16.cublas") != std::string::npos;
  CHECK(named);

  // Farther outside, wider; where the error does not grow, the region is named all the same.
  on(products(s).quality.region, Axis::m).high /= 4;
  const Prediction farther = simulate(s, {});
  CHECK(farther.extrapolations.front().growth > e.growth);
  CHECK(farther.high > outside.high);
  products(s).quality.region.per_octave = 0;
  const Prediction flat = simulate(s, {});
  REQUIRE(flat.extrapolations.size() == 1);
  CHECK(flat.high == before.high);
}

TEST_CASE("the growth of a curve is the mean over its kernels by time") {
  Scenario s = training({.tp = 1, .pp = 1, .dp = 16, .zero_stage = 3});
  Region region = used_region(s);
  on(region, Axis::n).high /= 8;
  region.per_octave = 0.1;
  products(s).quality.region = region;
  const StepContext context = step_context(s);
  double seconds = 0, weighted = 0;
  for (const UsedKernel& u : step_kernels(context, s.model, s.job, s.layout, s.stack)) {
    const Curve& curve =
        context.calibration.curve(u.kernel.work.kind, u.kernel.work.input, u.kernel.library);
    if (&curve != &products(s)) continue;
    const double t = u.count * kernel_time(u.kernel, context.device, context.calibration).time.si();
    seconds += t;
    weighted += t * octaves_outside(u.kernel.work, region);
  }
  REQUIRE(weighted > 0);
  const auto found = find_extrapolations(context, s.model, s.job, s.layout, s.stack);
  REQUIRE(found.size() == 1);
  CHECK(found[0].growth == Approx(0.1 * weighted / seconds));
}

TEST_CASE("a step's kernels are the compute that the step shows") {
  // Without communication, recompute or pipeline the labels of compute hold exactly these kernels.
  Scenario s = training({.tp = 1, .pp = 1, .dp = 1, .micro_batch = 1}, 1);
  s.job.global_batch = 4;
  s.stack.host.dispatch.value = Seconds(0);
  const StepContext context = step_context(s);
  double kernels = 0;
  for (const UsedKernel& u : step_kernels(context, s.model, s.job, s.layout, s.stack))
    kernels += u.count * kernel_time(u.kernel, context.device, context.calibration).time.si();
  const StepResult result = step(context, s.model, s.job, s.layout, s.stack);
  double shown = 0;
  for (int i = 0; i < label_count; ++i) {
    const auto label = static_cast<Label>(i);
    if (label != Label::host && label != Label::bubble)
      shown += to_seconds(result.stages[0][label]).si();
  }
  CHECK(kernels == Approx(shown / result.throttle).epsilon(0.03));
}

}  // namespace
}  // namespace orrery
