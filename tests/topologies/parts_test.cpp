// SPDX-License-Identifier: Apache-2.0
// Knows what wirings are made of: published counts, and how parts grow with size.
#include "topologies/parts.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>

#include "topologies/bisection.h"
#include "topologies/routing/routing.h"
#include "topologies/scale_up.h"

namespace orrery {
namespace {

const std::filesystem::path root = ORRERY_SOURCE_DIR;

Fabric load(const std::string& name) {
  return read_fabric(JsonValue::load(root / "topologies/catalog" / (name + ".json")));
}

// "nic>leaf" -> {"nic", "leaf"}
std::pair<std::string, std::string> ends(const std::string& text) {
  const auto at = text.find('>');
  return {text.substr(0, at), text.substr(at + 1)};
}

TEST_CASE("wirings are made of what is published", "[parts]") {
  const auto file = JsonValue::load(root / "tests/topologies/parts.json");
  int rows = 0;
  for (const JsonValue& row : file.at("cases").items()) {
    row.expect_only({"fabric", "accelerators", "why", "switches", "ports_used", "cables",
                     "transceivers", "scale_up_bisection", "scale_out_bisection",
                     "scale_up_diameter", "scale_out_diameter"});
    const Fabric fabric = load(row.at("fabric").text());
    INFO(fabric.name << ": " << row.at("why").text());
    const FabricParts parts = fabric_parts(fabric, row.at("accelerators").integer());
    const auto each = [&](const char* key, const auto& found) {
      if (const auto object = row.find(key))
        for (const auto& [name, want] : object->members()) {
          INFO(key << " of " << name);
          CHECK(found(name) == want.integer());
          ++rows;
        }
    };
    each("switches", [&](const std::string& role) { return parts.switch_count(role); });
    each("ports_used", [&](const std::string& role) {
      for (const SwitchCount& item : parts.switches)
        if (item.role == role) return item.ports_used;
      return std::int64_t{0};
    });
    each("cables", [&](const std::string& name) {
      const auto [from, to] = ends(name);
      return parts.cable_count(from, to);
    });
    each("transceivers", [&](const std::string& name) {
      const auto [from, to] = ends(name);
      std::int64_t sum = 0;
      for (const CableRun& run : parts.cables)
        if (run.from == from && run.to == to) sum += run.transceivers;
      return sum;
    });
    if (const auto want = row.find("scale_up_bisection"))
      CHECK(parts.scale_up_bisection.si() == Approx(want->quantity<BytesPerSecond>().si()));
    if (const auto want = row.find("scale_out_bisection"))
      CHECK(parts.scale_out_bisection.si() == Approx(want->quantity<BytesPerSecond>().si()));
    if (const auto want = row.find("scale_up_diameter"))
      CHECK(parts.scale_up_diameter == want->integer());
    if (const auto want = row.find("scale_out_diameter"))
      CHECK(parts.scale_out_diameter == want->integer());
  }
  CHECK(rows >= 50);
}

TEST_CASE("links that do not divide go to the outer chips", "[parts]") {
  CHECK(links_to_chip(18, 4, 0) == 5);
  CHECK(links_to_chip(18, 4, 1) == 4);
  CHECK(links_to_chip(18, 4, 2) == 4);
  CHECK(links_to_chip(18, 4, 3) == 5);
  rc::check("all links end at a chip, evenly", [] {
    const std::int64_t links = *rc::gen::inRange(0, 200), chips = *rc::gen::inRange(1, 60);
    std::int64_t sum = 0;
    for (std::int64_t c = 0; c < chips; ++c) {
      const std::int64_t here = links_to_chip(links, chips, c);
      RC_ASSERT(here == links / chips || here == links / chips + 1);
      RC_ASSERT(here <= links_to_chip(links, chips, 0));
      sum += here;
    }
    RC_ASSERT(sum == links);
  });
}

TEST_CASE("rail-only is the rail-optimised wiring without what joins rails", "[parts]") {
  const Fabric only = load("nvlink4-h800-multiplane");
  Fabric joined = only;
  joined.scale_out.kind = ScaleOutKind::rail_optimised;
  for (const std::int64_t n : {256, 1024, 2048, 16384}) {
    // A joined network of more than 2,048 needs a third tier.
    if (joined.scale_out.tiers.size() == 2 && n > 2048) {
      Tier pod = joined.scale_out.tiers[1];
      pod.reach = 1024;
      joined.scale_out.tiers.insert(joined.scale_out.tiers.begin() + 1, pod);
    }
    INFO(n);
    const FabricParts a = fabric_parts(only, n), b = fabric_parts(joined, n);
    const auto scale_out = [](const FabricParts& p) {
      return p.switch_count("leaf") + p.switch_count("spine") + p.switch_count("core");
    };
    CHECK(scale_out(a) <= scale_out(b));
    if (n == 256 || n == 16384) CHECK(scale_out(a) < scale_out(b));
    // The halves hold whole domains, so each rail joins them by itself.
    CHECK(a.scale_out_bisection.si() == Approx(b.scale_out_bisection.si()));
    CHECK(a.scale_out_diameter > 0);
  }
  CHECK(fabric_parts(only, 256).scale_out_diameter == 2);    // a leaf and an NVSwitch
  CHECK(fabric_parts(joined, 256).scale_out_diameter == 3);  // leaf, spine, leaf
  CHECK(fabric_parts(only, 2048).scale_out_diameter == 4);
}

TEST_CASE("tapering takes bisection and ports", "[parts]") {
  Fabric fabric = load("nvlink4-ndr");
  const double full = fabric_parts(fabric, 2048).scale_out_bisection.si();
  CHECK(full == Approx(1024 * 50e9));
  fabric.scale_out.tiers[0].oversubscription.value = 3;
  const FabricParts tapered = fabric_parts(fabric, 2048);
  CHECK(tapered.scale_out_bisection.si() < full / 2.5);
  CHECK(5 * tapered.cable_count("leaf", "spine") < 2 * 2048);
}

TEST_CASE("planes carry the same bytes on more cables", "[parts]") {
  Fabric fabric = load("nvlink5-800g-dual-plane");
  const FabricParts two = fabric_parts(fabric, 4096);
  CHECK(two.planes == 2);
  CHECK(two.nics == 4096);
  CHECK(two.cable_count("nic", "leaf") == 8192);
  CHECK(two.scale_out_bisection.si() == Approx(2048 * 100e9));
}

TEST_CASE("parts are counted at any size in no time", "[parts]") {
  Fabric fabric = load("nvlink4-ndr");
  for (Tier& tier : fabric.scale_out.tiers) tier.radix = 0;
  const auto start = std::chrono::steady_clock::now();
  double bisection = 0;
  for (const std::int64_t n :
       {INT64_C(1) << 20, INT64_C(1) << 24, INT64_C(1000000000), INT64_C(1) << 36}) {
    const FabricParts parts = fabric_parts(fabric, n);
    CHECK(parts.cable_count("nic", "leaf") == n);
    CHECK(parts.scale_out_bisection.si() > bisection);
    bisection = parts.scale_out_bisection.si();
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(100));
}

TEST_CASE("what a wiring cannot join is an error", "[parts]") {
  CHECK_THROWS_AS(fabric_parts(load("nvlink4-host"), 16), Error);
  CHECK_NOTHROW(fabric_parts(load("nvlink4-host"), 8));
  Fabric fabric = load("nvlink4-ndr");
  CHECK_THROWS_AS(fabric_parts(fabric, INT64_C(1) << 30), Error);
  fabric.scale_out.kind = ScaleOutKind::torus;
  CHECK_THROWS_AS(fabric_parts(fabric, 64), Error);
}

TEST_CASE("more accelerators never need fewer parts", "[parts]") {
  for (const char* name : {"nvlink4-ndr", "nvl72-xdr", "nvlink4-roce", "nvlink4-dragonfly-plus"}) {
    const Fabric fabric = load(name);
    rc::check(name, [&] {
      const std::int64_t domain = fabric.scale_up.domain;
      const std::int64_t a = *rc::gen::inRange(1, 200), b = a + *rc::gen::inRange(1, 200);
      const FabricParts less = fabric_parts(fabric, a * domain);
      const FabricParts more = fabric_parts(fabric, b * domain);
      RC_ASSERT(less.nics <= more.nics);
      RC_ASSERT(less.switch_count("leaf") <= more.switch_count("leaf"));
      RC_ASSERT(less.switch_count("nvswitch") < more.switch_count("nvswitch"));
      RC_ASSERT(less.scale_out_diameter <= more.scale_out_diameter);
    });
  }
}

TEST_CASE("the plan of leaves is the one that flows are routed by", "[parts]") {
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / "topologies/catalog")) {
    if (entry.path().extension() != ".json") continue;
    const Fabric fabric = read_fabric(JsonValue::load(entry.path()));
    if (fabric.scale_out.kind == ScaleOutKind::none) continue;
    if (fabric.scale_up.domain > 600 || fabric.sites.accelerators != 0) continue;
    // Full groups of whole domains: two of the first tier, or any number under one switch.
    const std::int64_t reach = fabric.scale_out.tiers[0].reach;
    if (reach % fabric.scale_up.domain != 0) continue;
    const std::int64_t n = reach == 0 ? 4 * fabric.scale_up.domain : 2 * reach;
    INFO(fabric.name << " at " << n);
    const ClosShape shape = clos_shape(fabric, n);
    if (n % shape.tiers[0].reach != 0) continue;
    const LeafPlan plan(fabric, shape);
    const Router router(fabric, n, routing_of(fabric));
    int different = 0;
    for (std::int64_t a = 0; a < n; ++a) {
      const LeafPlan::Place place = plan.of(a);
      const std::int64_t leaf =
          place.group * shape.tiers[0].switches + place.rail * plan.per_rail + place.leaf;
      if (router.leaf_of(a) != leaf) ++different;
    }
    CHECK(different == 0);
    ++compared;
  }
  CHECK(compared >= 30);
}

TEST_CASE("a cut of a tree lies where links are fewest", "[parts]") {
  // Four leaves of four hosts, two links up each: two leaves on either side.
  const std::vector<CutLevel> tapered = {{.reach = 4, .up = 2}};
  CHECK(least_cut(1, tapered, 16, 8) == 4);
  // Six hosts of twelve on the first side: a leaf and a half. The half leaf's own two hosts and the
  // least of the ways to part the leaves' links.
  CHECK(least_cut(1, tapered, 12, 6) == 4);
  CHECK(least_cut(1, {}, 10, 5) == 5);
  // Four groups joined pairwise by links of one: two times two pairs.
  CHECK(least_cut(1, {{.reach = 8, .up = 1e300}}, 32, 16, 1) == 4);
}

}  // namespace
}  // namespace orrery
