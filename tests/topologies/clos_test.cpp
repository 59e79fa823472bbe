// SPDX-License-Identifier: Apache-2.0
// Knows what shapes of fabrics promise: the published counts, and laws of ports and links.
#include "topologies/clos.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <filesystem>

#include "topologies/dragonfly.h"

namespace orrery {
namespace {

const std::filesystem::path root = ORRERY_SOURCE_DIR;

Fabric load(const std::string& name) {
  return read_fabric(JsonValue::load(root / "topologies/catalog" / (name + ".json")));
}

JsonValue counts() { return JsonValue::load(root / "tests/topologies/counts.json"); }

std::int64_t count_at(const JsonValue& row, const char* key) {
  return row.at(key).integer(0, INT64_C(1) << 40);
}

TEST_CASE("wirings have the switches and links that are published of them", "[clos]") {
  const auto rows = counts().at("wirings").items();
  CHECK(rows.size() >= 30);
  for (const JsonValue& row : rows) {
    INFO(row.at("name").text());
    const ClosShape shape =
        clos_shape(load(row.at("fabric").text()), count_at(row, "accelerators"));
    const auto switches = row.at("switches").items(), links = row.at("links_up").items();
    REQUIRE(shape.tiers.size() == switches.size());
    for (std::size_t t = 0; t < shape.tiers.size(); ++t) {
      CHECK(shape.switches(t) == switches[t].integer());
      CHECK(shape.links_up(t) == (t < links.size() ? links[t].integer() : 0));
      if (row.has("groups")) CHECK(shape.tiers[t].groups == row.at("groups").items()[t].integer());
      if (row.has("down")) CHECK(shape.tiers[t].down == row.at("down").items()[t].integer());
    }
  }
}

TEST_CASE("closed forms of two and three tiers", "[clos]") {
  for (const JsonValue& row : counts().at("two_tier").items()) {
    INFO(row.at("name").text());
    const TwoTier made = two_tier(count_at(row, "endpoints"), count_at(row, "radix"));
    CHECK(made.leaves == count_at(row, "leaves"));
    CHECK(made.spines == count_at(row, "spines"));
    CHECK(made.uplinks == count_at(row, "uplinks"));
  }
  for (const JsonValue& row : counts().at("three_tier").items()) {
    INFO(row.at("name").text());
    const ThreeTier made = three_tier(count_at(row, "endpoints"), count_at(row, "radix"));
    CHECK(made.leaves == count_at(row, "leaves"));
    CHECK(made.spines == count_at(row, "spines"));
    CHECK(made.cores == count_at(row, "cores"));
    CHECK(made.leaf_spine == count_at(row, "leaf_spine"));
    CHECK(made.spine_core == count_at(row, "spine_core"));
  }
  for (const JsonValue& row : counts().at("most_endpoints").items()) {
    const std::int64_t most = count_at(row, "endpoints"), radix = count_at(row, "radix");
    if (count_at(row, "tiers") == 2) {
      CHECK(two_tier(most, radix).leaves == radix);
      CHECK_THROWS_AS(two_tier(most + 1, radix), Error);
    } else {
      CHECK(three_tier(most, radix).spines == radix * radix / 2);
      CHECK_THROWS_AS(three_tier(most + 1, radix), Error);
    }
  }
}

TEST_CASE("a wiring joins as many as its ports do", "[clos]") {
  for (const JsonValue& row : counts().at("most_accelerators").items()) {
    const Fabric fabric = load(row.at("fabric").text());
    const std::int64_t most = count_at(row, "accelerators");
    INFO(fabric.name);
    CHECK_NOTHROW(clos_shape(fabric, most));
    CHECK_THROWS_AS(clos_shape(fabric, most + 1), Error);
  }
}

// In a wiring that the catalogue ships, what a tier is said to reach is what its ports join.
TEST_CASE("the reach of every shipped tier fits its radix", "[clos]") {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / "topologies/catalog")) {
    if (entry.path().extension() != ".json") continue;
    const Fabric fabric = load(entry.path().stem().string());
    const ScaleOut& out = fabric.scale_out;
    INFO(fabric.name);
    if (out.kind == ScaleOutKind::none) {
      CHECK(clos_shape(fabric, 8).tiers.empty());
      continue;
    }
    for (std::size_t t = 0; t + 1 < out.tiers.size(); ++t) {
      const ClosShape full = clos_shape(fabric, out.tiers[t].reach);
      CHECK(full.tiers.size() <= std::max<std::size_t>(2, t + 1));
      CHECK(full.tiers[0].switches % out.rails == 0);
      ++seen;
    }
    CHECK_NOTHROW(clos_shape(fabric, 1));
  }
  CHECK(seen > 60);
}

TEST_CASE("tiers come as the accelerators need them", "[clos]") {
  const Fabric h100 = load("nvlink4-ndr");
  CHECK(clos_shape(h100, 8).tiers.size() == 2);  // eight rails meet in spines only
  CHECK(clos_shape(h100, 2048).tiers.size() == 2);
  const ClosShape three = clos_shape(h100, 2049);
  REQUIRE(three.tiers.size() == 3);
  CHECK(three.tiers[1].reach == 1024);  // half of a spine's ports go up now
  CHECK(clos_shape(load("nvlink4-h800-multiplane"), 256).tiers.size() == 1);
  CHECK(clos_shape(load("nvlink4x4-ndr"), 32).tiers.size() == 1);  // one leaf for all
  // An unpublished network stands as one switch.
  const ClosShape efa = clos_shape(load("nvlink4-efa-3200"), 1000);
  REQUIRE(efa.tiers.size() == 1);
  CHECK(efa.switches(0) == 1);
  CHECK(efa.tiers[0].down == 4000);
  // A part full site: leafs as they are needed, the last tier whole.
  const ClosShape sites = clos_shape(load("nvlink4-ndr-two-sites"), 16384 + 256);
  CHECK(sites.sites);
  CHECK(sites.switches(0) == 512 + 8);
  CHECK(sites.tiers.back().groups == 2);
  CHECK_FALSE(clos_shape(load("nvlink4-ndr-two-sites"), 16384).sites);
}

TEST_CASE("a small machine buys the network that it needs", "[clos]") {
  const Fabric h100 = load("nvlink4-ndr");  // 64 ports, pods of 256 over eight rails
  CHECK(bought_shape(h100, 8).tiers.empty());
  for (const std::int64_t gpus : {16, 64}) {
    const ClosShape one = bought_shape(h100, gpus);
    REQUIRE(one.tiers.size() == 1);
    CHECK(one.switches(0) == 1);
    CHECK(one.tiers[0].down == gpus);
    CHECK(one.links_up(0) == 0);
  }
  // Half a unit: 16 ports of each leaf in use, as many up.
  const ClosShape half = bought_shape(h100, 128);
  REQUIRE(half.tiers.size() == 2);
  CHECK(half.switches(0) == 8);
  CHECK(half.links_up(0) == 128);
  CHECK(half.switches(1) == 2);
  // 17 ports divide over no few spines; 18 links up do.
  const ClosShape odd = bought_shape(h100, 136);
  CHECK(odd.tiers[0].down == 17);
  CHECK(odd.tiers[0].up == 18);
  CHECK(odd.switches(1) == 3);
  // From a whole group on nothing changes: what is published of units is what is counted.
  for (const auto& entry : std::filesystem::directory_iterator(root / "topologies/catalog")) {
    if (entry.path().extension() != ".json") continue;
    const Fabric fabric = load(entry.path().stem().string());
    if (fabric.scale_out.kind == ScaleOutKind::none) continue;
    INFO(fabric.name);
    for (const std::int64_t gpus : {512, 1016, 4096, 16384}) {
      const std::vector<Tier>& tiers = fabric.scale_out.tiers;
      if (tiers.size() < 2 || gpus < tiers[0].reach || gpus <= fabric.scale_up.domain) continue;
      ClosShape all;
      try {
        all = clos_shape(fabric, gpus);
      } catch (const Error&) {
        continue;  // more than its ports join
      }
      const ClosShape bought = bought_shape(fabric, gpus);
      REQUIRE(all.tiers.size() == bought.tiers.size());
      for (std::size_t t = 0; t < all.tiers.size(); ++t) {
        CHECK(all.switches(t) == bought.switches(t));
        CHECK(all.links_up(t) == bought.links_up(t));
      }
    }
  }
}

TEST_CASE("links are as fast as the wiring says", "[clos]") {
  const ScaleOut hpn = load("nvlink4-h800-hpn").scale_out;
  CHECK(link_below(hpn, 0).si() == Approx(25e9));
  CHECK(link_below(hpn, 1).si() == Approx(50e9));
  CHECK(link_below(hpn, 2).si() == Approx(50e9));
  CHECK(link_below(load("nvl72-4plane").scale_out, 2).si() == Approx(25e9));
}

// A random wiring of two or three tiers; not all of them join what they are asked to.
Fabric random_fabric() {
  Fabric fabric;
  fabric.name = "random";
  ScaleOut& out = fabric.scale_out;
  out.kind = *rc::gen::element(ScaleOutKind::fat_tree, ScaleOutKind::rail_optimised,
                               ScaleOutKind::rail_only);
  if (out.kind != ScaleOutKind::fat_tree) out.rails = *rc::gen::element(1, 2, 4, 8);
  out.planes = *rc::gen::inRange<std::int64_t>(1, 5);
  out.nics_per_accelerator.value = *rc::gen::element(0.25, 0.5, 1.0, 2.0, 3.0);
  out.nic_bandwidth.value = bytes_per_second(50e9);
  const std::size_t count = *rc::gen::element<std::size_t>(1, 2, 3);
  std::int64_t reach = 1;
  for (std::size_t t = 0; t < count; ++t) {
    Tier tier;
    reach *= *rc::gen::inRange<std::int64_t>(2, t == 0 ? 200 : 20);
    tier.reach = t + 1 == count ? 0 : reach;
    tier.radix = *rc::gen::element(0, 16, 36, 40, 64, 128);
    tier.oversubscription.value = *rc::gen::element(1.0, 1.0, 1.0, 1.5, 2.0, 3.0, 7.0);
    if (t + 1 < count && *rc::gen::element(false, false, true))
      tier.uplink_bandwidth.value = link_below(out, t) * *rc::gen::element(2.0, 4.0);
    out.tiers.push_back(tier);
  }
  return fabric;
}

std::optional<ClosShape> shape_of(const Fabric& fabric, std::int64_t accelerators) {
  try {
    return clos_shape(fabric, accelerators);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::int64_t width_of(const ScaleOut& out, std::size_t t) {
  return std::llround(link_below(out, t + 1) / link_below(out, t));
}

// Which switches of the tier above one switch is joined to.
std::int64_t above_one(const ScaleOut& out, const ClosShape& shape, std::size_t t) {
  const std::int64_t columns = t > 0                                 ? shape.tiers[t].switches
                               : out.kind == ScaleOutKind::rail_only ? shape.rails
                                                                     : 1;
  return shape.tiers[t + 1].switches / columns;
}

TEST_CASE("no port is used twice, and every link has two ends", "[clos][law]") {
  int joined = 0;
  CHECK(rc::check("ports and links", [&] {
    const Fabric fabric = random_fabric();
    const ScaleOut& out = fabric.scale_out;
    const auto shape = shape_of(fabric, *rc::gen::inRange<std::int64_t>(1, 20000));
    if (!shape) return;
    ++joined;
    const double ports = static_cast<double>(shape->accelerators) * shape->ports_per_accelerator;
    RC_ASSERT(static_cast<double>(shape->switches(0) / shape->planes * shape->tiers[0].down) >=
              ports - 1e-6);
    RC_ASSERT(shape->tiers.back().groups == 1);
    for (std::size_t t = 0; t < shape->tiers.size(); ++t) {
      const ClosTier& tier = shape->tiers[t];
      RC_ASSERT(tier.groups * tier.reach >= shape->accelerators);
      RC_ASSERT(shape->switches(t) >= 1);
      const std::int64_t radix = out.tiers[t].radix;
      if (t + 1 == shape->tiers.size()) {
        RC_ASSERT(tier.up == 0);
        RC_ASSERT(radix == 0 || tier.down <= radix);
        continue;
      }
      RC_ASSERT(radix == 0 || tier.down + tier.up * width_of(out, t) <= radix);
      // Every leaf reaches every spine of its pod (and rail) by equally many links.
      RC_ASSERT(tier.up == tier.parallel * above_one(out, *shape, t));
      const ClosTier& above = shape->tiers[t + 1];
      RC_ASSERT(above.reach >= tier.reach || t + 2 == shape->tiers.size());
      RC_ASSERT(shape->links_up(t) <= shape->planes * above.groups * above.switches * above.down);
    }
  }));
  CHECK(joined > 20);
}

TEST_CASE("uplinks carry what the taper leaves, and no more than they must", "[clos][law]") {
  CHECK(rc::check("taper", [] {
    const Fabric fabric = random_fabric();
    const ScaleOut& out = fabric.scale_out;
    const auto shape = shape_of(fabric, *rc::gen::inRange<std::int64_t>(1, 20000));
    if (!shape) return;
    for (std::size_t t = 0; t + 1 < shape->tiers.size(); ++t) {
      const ClosTier& tier = shape->tiers[t];
      const double taper = out.tiers[t].oversubscription.get();
      const double rate = link_below(out, t + 1) / link_below(out, t);
      const double down = static_cast<double>(tier.down);
      RC_ASSERT(static_cast<double>(tier.up) * rate * taper >= down * (1 - 1e-5));
      RC_ASSERT(tier.up == 1 || static_cast<double>(tier.up - 1) * rate * taper < down);
      if (taper == 1 && rate == 1) RC_ASSERT(tier.up == tier.down);
    }
  }));
}

TEST_CASE("more accelerators never have fewer switches or links", "[clos][law]") {
  CHECK(rc::check("growth", [] {
    const Fabric fabric = random_fabric();
    const std::int64_t fewer = *rc::gen::inRange<std::int64_t>(1, 20000);
    const auto small = shape_of(fabric, fewer);
    const auto large = shape_of(fabric, fewer + *rc::gen::inRange<std::int64_t>(1, 3000));
    if (!large) return;
    RC_ASSERT(small.has_value());
    RC_ASSERT(small->tiers.size() <= large->tiers.size());
    for (std::size_t t = 0; t < small->tiers.size(); ++t) {
      RC_ASSERT(small->switches(t) <= large->switches(t));
      RC_ASSERT(small->links_up(t) <= large->links_up(t));
    }
  }));
}

TEST_CASE("two tiers of one radix are the closed form", "[clos][law]") {
  CHECK(rc::check("rail-optimised pods of full leafs", [] {
    const std::int64_t radix = 2 * *rc::gen::inRange<std::int64_t>(4, 80);
    const std::int64_t rails = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
    Fabric fabric;
    ScaleOut& out = fabric.scale_out;
    out.kind = ScaleOutKind::rail_optimised;
    out.rails = rails;
    out.nics_per_accelerator.value = 1;
    out.nic_bandwidth.value = bytes_per_second(50e9);
    const std::int64_t group = rails * radix / 2;
    for (const std::int64_t reach : {group, std::int64_t{0}}) {
      out.tiers.push_back({.reach = reach, .radix = radix});
      out.tiers.back().oversubscription.value = 1;
    }
    const std::int64_t groups = *rc::gen::inRange<std::int64_t>(1, radix / rails + 1);
    if (groups * rails == 1) return;
    const ClosShape shape = clos_shape(fabric, groups * group);
    const TwoTier form = two_tier(groups * group, radix);
    RC_ASSERT(shape.switches(0) == form.leaves);
    RC_ASSERT(shape.switches(1) == form.spines);
    RC_ASSERT(shape.links_up(0) == form.uplinks);
  }));
}

TEST_CASE("a dragonfly+ wiring is the closed form", "[clos][law]") {
  CHECK(rc::check("any radix, any number of hosts", [] {
    const std::int64_t radix = 2 * *rc::gen::inRange<std::int64_t>(2, 24);
    const std::int64_t half = radix / 2;
    Fabric fabric;
    ScaleOut& out = fabric.scale_out;
    out.kind = ScaleOutKind::dragonfly_plus;
    out.nics_per_accelerator.value = 1;
    out.nic_bandwidth.value = bytes_per_second(50e9);
    for (const std::int64_t reach : {half, half * half, std::int64_t{0}}) {
      out.tiers.push_back({.reach = reach, .radix = radix});
      out.tiers.back().oversubscription.value = 1;
    }
    const std::int64_t most = dragonfly_plus_max_hosts(radix);
    const std::int64_t hosts = *rc::gen::inRange<std::int64_t>(1, most + 1);
    const DragonflyPlus form = dragonfly_plus(radix, hosts);
    const ClosShape shape = clos_shape(fabric, hosts);
    RC_ASSERT(shape.switches(0) == form.leaves);
    if (form.spines > 0) {
      RC_ASSERT(shape.switches(1) == form.spines);
      RC_ASSERT(shape.links_up(0) == form.leaf_spine);
      RC_ASSERT(shape.links_up(1) == form.global_links);
      RC_ASSERT(form.groups == 1 || shape.tiers[1].parallel == form.per_pair);
    }
    RC_ASSERT(!shape_of(fabric, most + 1));
  }));
}

}  // namespace
}  // namespace orrery
