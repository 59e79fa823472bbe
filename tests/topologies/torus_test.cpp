// SPDX-License-Identifier: Apache-2.0
// Knows what tori promise: published pods, shapes of slices, links and cuts counted one by one.
#include "topologies/torus.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <filesystem>

namespace orrery {
namespace {

const std::filesystem::path root = ORRERY_SOURCE_DIR;

ScaleUp load(const std::string& name) {
  return read_fabric(JsonValue::load(root / "topologies/catalog" / (name + ".json"))).scale_up;
}

TEST_CASE("slices have the published shapes and parts", "[torus]") {
  const auto file = JsonValue::load(root / "tests/topologies/torus.json");
  for (const JsonValue& row : file.at("slices").items()) {
    const TorusShape shape =
        torus_slice(load(row.at("fabric").text()), row.at("accelerators").integer());
    INFO(row.at("fabric").text() << " of " << row.at("accelerators").integer());
    const auto edges = row.at("shape").items();
    REQUIRE(edges.size() == shape.axes.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      CHECK(shape.axes[i].size == edges[i].integer());
      CHECK(shape.axes[i].ring == row.at("rings").items()[i].boolean());
    }
    CHECK(shape.cubes() == row.at("cubes").integer());
    CHECK(shape.optical_links() == row.at("optical_links").integer());
    CHECK(shape.circuit_switches() == row.at("circuit_switches").integer());
    CHECK(shape.diameter() == row.at("diameter").integer());
    CHECK(shape.bisection().si() == Approx(row.at("bisection").quantity<BytesPerSecond>().si()));
  }
}

TEST_CASE("the most cube-like shape has the least sum of edges", "[torus]") {
  CHECK(most_cube_like(144) == std::array<std::int64_t, 3>{4, 6, 6});
  CHECK(most_cube_like(140) == std::array<std::int64_t, 3>{4, 5, 7});
  CHECK(most_cube_like(13) == std::array<std::int64_t, 3>{1, 1, 13});
  rc::check("no other factors are nearer", [] {
    const std::int64_t n = *rc::gen::inRange(1, 2000);
    const auto best = most_cube_like(n);
    RC_ASSERT(best[0] * best[1] * best[2] == n);
    RC_ASSERT(best[0] <= best[1] && best[1] <= best[2]);
    for (std::int64_t a = 1; a <= n; ++a)
      if (n % a == 0)
        for (std::int64_t b = 1; b <= n / a; ++b)
          if (n / a % b == 0) RC_ASSERT(a + b + n / a / b >= best[0] + best[1] + best[2]);
  });
}

TEST_CASE("links and cuts of a torus are what its points have", "[torus]") {
  rc::check([] {
    TorusShape shape;
    const int axes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < axes; ++i) {
      const std::int64_t size = *rc::gen::inRange(1, 8);
      shape.axes.push_back({.size = size,
                            .ring = size >= 3 && *rc::gen::arbitrary<bool>(),
                            .link = BytesPerSecond(1e9 * *rc::gen::inRange(1, 4))});
    }
    std::int64_t links = 0;
    const std::int64_t points = shape.points();
    double least = 0;
    std::int64_t stride = 1;
    for (const TorusAxis& axis : shape.axes) {
      double across = 0;
      for (std::int64_t p = 0; p < points; ++p) {
        const std::int64_t at = p / stride % axis.size;
        if (at + 1 == axis.size && !axis.ring) continue;
        ++links;
        const std::int64_t next = (at + 1) % axis.size;
        if ((at < axis.size / 2) != (next < axis.size / 2)) across += axis.link.si();
      }
      if (axis.size % 2 == 0 && (least == 0 || across < least)) least = across;
      stride *= axis.size;
    }
    RC_ASSERT(links == shape.links());
    if (least > 0) RC_ASSERT(shape.bisection().si() == least);
  });
}

TEST_CASE("a slice holds what is asked in whole cubes of its pod", "[torus]") {
  for (const char* name : {"ici-v4", "ici-v7", "ici-v5e", "neuronlink3-efa"}) {
    const ScaleUp up = load(name);
    rc::check(name, [&] {
      const std::int64_t n = *rc::gen::inRange<std::int64_t>(1, up.domain + 1);
      const TorusShape shape = torus_slice(up, n);
      RC_ASSERT(shape.points() >= n);
      RC_ASSERT(shape.points() <= up.domain);
      if (up.cube > 0 && n >= 64) {
        RC_ASSERT(shape.cubes() * 64 == shape.points());
        RC_ASSERT(shape.points() - n < 64);
        RC_ASSERT(shape.optical_links() == 96 * shape.cubes());
      }
    });
  }
}

}  // namespace
}  // namespace orrery
