// SPDX-License-Identifier: Apache-2.0
// Knows the closed forms of dragonfly+, and that the shipped wiring follows them.
#include "topologies/dragonfly.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <filesystem>

#include "topologies/parts.h"

namespace orrery {
namespace {

const std::filesystem::path root = ORRERY_SOURCE_DIR;

TEST_CASE("dragonfly+ has the counts of its closed forms", "[dragonfly]") {
  const auto file = JsonValue::load(root / "tests/topologies/dragonfly.json");
  for (const JsonValue& row : file.at("networks").items()) {
    const DragonflyPlus found =
        dragonfly_plus(row.at("radix").integer(), row.at("hosts").integer());
    INFO(found.radix << " ports, " << found.hosts << " hosts");
    CHECK(found.groups == row.at("groups").integer());
    CHECK(found.leaves == row.at("leaves").integer());
    CHECK(found.spines == row.at("spines").integer());
    CHECK(found.leaf_spine == row.at("leaf_spine").integer());
    CHECK(found.global_links == row.at("global_links").integer());
    CHECK(found.per_pair == row.at("per_pair").integer());
    CHECK(found.diameter == row.at("diameter").integer());
  }
}

TEST_CASE("groups of a dragonfly+ have the links that their spines have ports for", "[dragonfly]") {
  rc::check([] {
    const std::int64_t radix = 2 * *rc::gen::inRange<std::int64_t>(2, 70);
    const std::int64_t most = dragonfly_plus_max_hosts(radix);
    const DragonflyPlus d = dragonfly_plus(radix, *rc::gen::inRange<std::int64_t>(1, most + 1));
    RC_ASSERT(d.groups <= dragonfly_plus_max_groups(radix));
    RC_ASSERT(d.per_pair * (d.groups - 1) <= radix * radix / 4);
    RC_ASSERT(d.groups == 1 || d.per_pair >= 1);
    RC_ASSERT(d.leaves * radix / 2 >= d.hosts);
    RC_ASSERT((d.leaves - 1) * radix / 2 < d.hosts);
    CHECK_THROWS_AS(dragonfly_plus(radix, most + 1), Error);
  });
  CHECK_THROWS_AS(dragonfly_plus(7, 10), Error);
}

TEST_CASE("the shipped dragonfly+ is one", "[dragonfly]") {
  const Fabric fabric =
      read_fabric(JsonValue::load(root / "topologies/catalog/nvlink4-dragonfly-plus.json"));
  const std::int64_t radix = fabric.scale_out.tiers[0].radix;
  for (const std::int64_t groups : {2, 3, 8, 17, 100}) {
    const std::int64_t n = groups * radix * radix / 4;
    INFO(n);
    const DragonflyPlus want = dragonfly_plus(radix, n);
    const FabricParts parts = fabric_parts(fabric, n);
    CHECK(parts.switch_count("leaf") == want.leaves);
    CHECK(parts.switch_count("spine") == want.spines);
    CHECK(parts.cable_count("leaf", "spine") == want.leaf_spine);
    CHECK(parts.cable_count("spine", "spine") == want.global_links);
    CHECK(parts.scale_out_diameter == want.diameter);
    if (groups % 2 == 0) {
      const double pairs = static_cast<double>(groups * groups / 4 * want.per_pair);
      const double hosts = static_cast<double>(n / 2);
      CHECK(parts.scale_out_bisection.si() ==
            Approx(std::min(pairs, hosts) * fabric.scale_out.nic_bandwidth.get().si()));
    }
  }
}

}  // namespace
}  // namespace orrery
