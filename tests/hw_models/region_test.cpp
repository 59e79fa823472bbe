// SPDX-License-Identifier: Apache-2.0
// Tests regions: laws of the distance to them, and files that state them.
#include "hw_models/region.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cmath>

#include "hw_models/calibration.h"
#include "hw_models/catalog.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

std::int64_t any_size() { return *rc::gen::inRange<std::int64_t>(1, 1 << 20); }

Work any_work(WorkKind kind) {
  return {.kind = kind,
          .m = any_size(),
          .n = any_size(),
          .k = any_size(),
          .groups = *rc::gen::inRange<std::int64_t>(1, 300),
          .batch = *rc::gen::inRange<std::int64_t>(1, 500),
          .heads = *rc::gen::inRange<std::int64_t>(1, 200),
          .q_length = any_size(),
          .kv_length = any_size(),
          .qk_dim = *rc::gen::inRange<std::int64_t>(16, 600),
          .bytes_read = static_cast<double>(any_size()),
          .bytes_written = static_cast<double>(any_size())};
}

WorkKind any_kind() { return static_cast<WorkKind>(*rc::gen::inRange(0, work_kind_count)); }

Region region_of(const std::vector<Work>& works) {
  Region region;
  for (const Work& work : works) include(region, work);
  return region;
}

// The same work, `factor` times as large on one axis.
Work stretched(Work work, Axis axis, std::int64_t factor) {
  switch (axis) {
    case Axis::m:
      work.m *= factor;
      break;
    case Axis::n:
      work.n *= factor;
      break;
    case Axis::k:
      work.k *= factor;
      break;
    case Axis::groups:
      work.groups *= factor;
      break;
    case Axis::sequence_heads:
      work.batch *= factor;
      break;
    case Axis::q_length:
      work.q_length *= factor;
      break;
    case Axis::kv_length:
      work.kv_length *= factor;
      break;
    case Axis::qk_dim:
      work.qk_dim *= factor;
      break;
    case Axis::bytes:
      work.bytes_read *= static_cast<double>(factor);
      work.bytes_written *= static_cast<double>(factor);
      break;
  }
  return work;
}

TEST_CASE("works that made a region lie inside it, and so does all between them") {
  rc::check("zero inside", [] {
    const WorkKind kind = any_kind();
    const Work a = any_work(kind), b = any_work(kind), c = any_work(kind);
    const Region region = region_of({a, b, c});
    RC_ASSERT(region.known());
    for (const Work& work : {a, b, c}) RC_ASSERT(octaves_outside(work, region) == 0);
    Work between = a;
    between.m = std::midpoint(a.m, b.m);
    between.kv_length = std::midpoint(a.kv_length, c.kv_length);
    between.bytes_read = std::midpoint(a.bytes_read, b.bytes_read);
    between.bytes_written = std::midpoint(a.bytes_written, b.bytes_written);
    RC_ASSERT(octaves_outside(between, region) == 0);
  });
}

TEST_CASE("the distance to a region is one octave a doubling, and grows on every axis") {
  rc::check("monotone outside", [] {
    const WorkKind kind = any_kind();
    const std::vector<Axis> axes = axes_of(kind);
    const Region region = region_of({any_work(kind), any_work(kind)});
    const Axis axis = axes[*rc::gen::inRange<std::size_t>(0, axes.size())];
    Work work = any_work(kind);
    double before = octaves_outside(work, region);
    RC_ASSERT(before >= 0);
    // Above the region from some doubling on: each then adds an octave.
    for (int doubling = 0; doubling < 24; ++doubling) {
      const double at = *position(work, axis);
      const auto extent = std::find_if(region.extents.begin(), region.extents.end(),
                                       [&](const Extent& e) { return e.axis == axis; });
      work = stretched(work, axis, 2);
      const double after = octaves_outside(work, region);
      if (at >= extent->high) RC_ASSERT(std::abs(after - before - 1) < 1e-9);
      if (2 * at <= extent->low) RC_ASSERT(std::abs(after - before + 1) < 1e-9);
      before = after;
    }
  });
}

TEST_CASE("a larger region is never farther away, and no region is nowhere outside") {
  rc::check("wider is nearer", [] {
    const WorkKind kind = any_kind();
    const Work a = any_work(kind), b = any_work(kind), probe = any_work(kind);
    RC_ASSERT(octaves_outside(probe, region_of({a, b})) <= octaves_outside(probe, region_of({a})));
    RC_ASSERT(octaves_outside(probe, Region{}) == 0);
  });
  // A curve that stands in for another kind's has axes that the kind lacks.
  const Work stream{.kind = WorkKind::norm, .bytes_read = 1e9};
  CHECK(octaves_outside(stream, region_of({{.kind = WorkKind::gemm, .m = 2, .n = 2, .k = 2}})) ==
        0);
}

std::string with_fit(const std::string& fit) {
  return R"({"device": "x", "curves": [{"kind": "gemm", "format": "bf16", "library": "cublas",
    "scale": {"value": 1, "evidence": "measured", "source": "s"}, "fit": {"fitted": 7,
    "held_out": 3, "median_error": 0.03, "p90_error": 0.1, )" +
         fit + R"(}, "parameters": {"tensor_efficiency": 0.8, "memory_efficiency": 0.8}}]})";
}

Calibration parse(const std::string& text) {
  return read_calibration(JsonValue::parse(text, "test.json"));
}

TEST_CASE("a region and a spread read back as they were written") {
  const Calibration once =
      parse(with_fit(R"("region": {"k": [64, 65537], "m": [1, 131071], "per_octave": 0.03},
                        "spread": {"tensor_efficiency": 0.01, "roles.weight_gradient": 0.2})"));
  for (const Calibration& c : {once, parse(to_json_text(once, "a note"))}) {
    const FitQuality& quality = c.curves.front().quality;
    REQUIRE(quality.region.extents.size() == 2);
    CHECK(quality.region.extents[0].axis == Axis::m);
    CHECK(quality.region.extents[0].high == 131071);
    CHECK(quality.region.extents[1].axis == Axis::k);
    CHECK(quality.region.extents[1].low == 64);
    CHECK(quality.region.extents[1].high == 65537);
    CHECK(quality.region.per_octave == 0.03);
    REQUIRE(quality.spread.size() == 2);
    CHECK(quality.spread[0].name == "roles.weight_gradient");
    CHECK(quality.spread[1].name == "tensor_efficiency");
    CHECK(quality.spread[0].relative_error + quality.spread[1].relative_error == Approx(0.21));
  }
}

TEST_CASE("mistakes in a region are one clear error") {
  CHECK_THROWS_WITH(parse(with_fit(R"("region": {"m": [64, 1], "per_octave": 0})")),
                    Contains("region.m") && Contains("before the largest"));
  CHECK_THROWS_WITH(parse(with_fit(R"("region": {"mm": [1, 64], "per_octave": 0})")),
                    Contains("mm") && Contains("an axis of gemm"));
  CHECK_THROWS_WITH(parse(with_fit(R"("region": {"kv_length": [1, 64], "per_octave": 0})")),
                    Contains("kv_length"));
  CHECK_THROWS_WITH(parse(with_fit(R"("region": {"m": [0, 64], "per_octave": 0})")),
                    Contains("above zero"));
  CHECK_THROWS_WITH(parse(with_fit(R"("region": {"m": [1, 2, 3], "per_octave": 0})")),
                    Contains("two numbers"));
  CHECK_THROWS_WITH(parse(with_fit(R"("region": {"m": [1, 64], "per_octave": -1})")),
                    Contains("per_octave") && Contains("not negative"));
  CHECK_THROWS_WITH(parse(with_fit(R"("region": {"m": [1, 64]})")), Contains("per_octave"));
  CHECK_THROWS_WITH(parse(with_fit(R"("region": {"per_octave": 0.1})")), Contains("one axis"));
  CHECK_THROWS_WITH(parse(with_fit(R"("spread": {"tensor_eficiency": 0.1})")),
                    Contains("tensor_efficiency"));
  CHECK_THROWS_WITH(parse(with_fit(R"("spread": {"k_half": -0.1})")), Contains("not negative"));
}

}  // namespace
}  // namespace orrery
