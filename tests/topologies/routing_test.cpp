// SPDX-License-Identifier: Apache-2.0
// Knows what routes promise: bytes are conserved, links exist, bundles and faults change no other.
#include "topologies/routing/routing.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>

#include "tests/topologies/random_fabric.h"

namespace orrery {
namespace {

using Links = std::vector<RouteLink>;

Links route(const Router& router, std::int64_t a, std::int64_t b, std::uint64_t label = 0) {
  Links out;
  router.route(a, b, label, out);
  return out;
}

// What a law is tried on: a fabric, its options, faults that leave every pair a path.
struct Case {
  Fabric fabric;
  std::int64_t accelerators = 0;
  RoutingOptions options;
  std::vector<NetworkFault> faults;
};

std::optional<Router> build(const Case& c, bool bundled, bool faults = true) {
  RoutingOptions options = c.options;
  options.bundled = bundled;
  try {
    return std::optional<Router>(std::in_place, c.fabric, c.accelerators, options,
                                 std::span(c.faults).first(faults ? c.faults.size() : 0));
  } catch (const Error&) {
    return std::nullopt;
  }
}

Case random_case(bool faulted) {
  Case c{.fabric = random_fabric()};
  const std::int64_t domain = c.fabric.scale_up.domain;
  c.accelerators = domain * *rc::gen::inRange<std::int64_t>(2, 40);
  if (*rc::gen::inRange(0, 4) == 0 && c.fabric.scale_out.tiers.size() == 2) {
    ScaleOut& out = c.fabric.scale_out;
    c.fabric.sites.accelerators = 2 * out.tiers[0].reach;
    c.accelerators = c.fabric.sites.accelerators * 2;
    c.fabric.sites.bandwidth = given(BytesPerSecond(1000));
    c.fabric.sites.efficiency = given(0.5);
  }
  c.options = routing_of(c.fabric);
  c.options.seed = *rc::gen::arbitrary<std::uint64_t>();
  // Too many for the radix or for the links between groups: switches as large as they must be
  // join any number.
  if (!build(c, true)) {
    for (Tier& tier : c.fabric.scale_out.tiers) tier.radix = 0;
    if (c.fabric.scale_out.kind == ScaleOutKind::dragonfly_plus)
      c.fabric.scale_out.kind = ScaleOutKind::fat_tree;
  }
  const std::optional<Router> healthy = build(c, true);
  RC_ASSERT(healthy.has_value());
  if (!faulted) return c;
  const int faults = *rc::gen::inRange(1, 5);
  for (int i = 0; i < faults; ++i) {
    c.faults.push_back(random_fault(*healthy));
    if (!build(c, true)) c.faults.pop_back();
  }
  return c;
}

// Sums of share times links per place where flow is conserved. Rounding: half of 2^-30 a link.
struct Sums {
  std::map<std::vector<std::int64_t>, double> at;
  double links = 0;
  double total(LinkKind kind, int tier = 0) const {
    double sum = 0;
    for (const auto& [key, value] : at)
      if (key[0] == static_cast<int>(kind) && key[1] == tier) sum += value;
    return sum;
  }
};
Sums sums_of(const Router& router, const Links& links) {
  Sums sums;
  for (const RouteLink& l : links) {
    const LinkName& n = l.link;
    const auto count = static_cast<double>(router.size(n).links);
    const std::int64_t spine = n.tier == 1 ? n.lower : n.upper;
    const bool switches = n.kind == LinkKind::up || n.kind == LinkKind::down;
    sums.at[{static_cast<int>(n.kind), n.tier, n.plane, switches ? spine : -1}] += l.share * count;
    sums.links += count;
  }
  return sums;
}

void check_conserved(const Router& router, const Case& c, std::int64_t a, std::int64_t b) {
  const Sums sums = sums_of(router, route(router, a, b));
  const double margin = 0x1p-24 + sums.links * 0x1p-31;
  const auto near = [&](double x, double y) { return std::abs(x - y) <= margin; };
  RC_ASSERT(near(sums.total(LinkKind::nic_out), 1));
  RC_ASSERT(near(sums.total(LinkKind::nic_in), 1));
  const int tier = router.tier_between(a, b);
  const bool dragonfly = c.fabric.scale_out.kind == ScaleOutKind::dragonfly_plus;
  RC_ASSERT(near(sums.total(LinkKind::up, 0), tier > 1 ? 1 : 0));
  RC_ASSERT(near(sums.total(LinkKind::down, 0), tier > 1 ? 1 : 0));
  RC_ASSERT(near(sums.total(LinkKind::up, 1), tier > 2 ? 1 : 0));
  RC_ASSERT(near(sums.total(LinkKind::down, 1), tier > 2 && !dragonfly ? 1 : 0));
  for (const auto& [key, value] : sums.at) {
    std::vector<std::int64_t> other = key;
    const auto kind = static_cast<LinkKind>(key[0]);
    if (kind == LinkKind::nic_out || kind == LinkKind::up)
      other[0] = static_cast<int>(kind == LinkKind::up ? LinkKind::down : LinkKind::nic_in);
    if (dragonfly && key[1] == 1) other = {static_cast<int>(LinkKind::up), 0, key[2], key[3]};
    if (sums.at.contains(other)) RC_ASSERT(near(value, sums.at.at(other)));
    if (kind == LinkKind::up && key[1] == 1) {
      other = {static_cast<int>(LinkKind::up), 0, key[2], key[3]};  // into the same spine
      RC_ASSERT(near(value, sums.at.at(other)));
    }
  }
}

TEST_CASE("what enters a tier leaves it", "[routing][law]") {
  CHECK(rc::check([] {
    Case c = random_case(*rc::gen::arbitrary<bool>());
    if (*rc::gen::inRange(0, 3) == 0) c.options.routing = Routing::ecmp;
    const std::optional<Router> router = build(c, *rc::gen::arbitrary<bool>());
    RC_PRE(router.has_value());
    const auto [a, b] = random_pair(c.fabric, c.accelerators);
    check_conserved(*router, c, a, b);
  }));
}

TEST_CASE("a route names links that exist, each once, none that has failed", "[routing][law]") {
  CHECK(rc::check([] {
    Case c = random_case(*rc::gen::arbitrary<bool>());
    if (*rc::gen::arbitrary<bool>()) c.options.routing = Routing::ecmp;
    const std::optional<Router> router = build(c, false);
    RC_PRE(router.has_value());
    const auto [a, b] = random_pair(c.fabric, c.accelerators);
    const ClosShape& shape = router->shape();
    const bool dragonfly = c.fabric.scale_out.kind == ScaleOutKind::dragonfly_plus;
    std::set<LinkName> seen;
    for (const RouteLink& l : route(*router, a, b)) {
      const LinkName& n = l.link;
      RC_ASSERT(seen.insert(n).second);
      RC_ASSERT(l.share > 0 && l.share <= 1);
      RC_ASSERT(l.share == exact_share(l.share));
      RC_ASSERT(router->size(n).capacity > 0);
      RC_ASSERT(router->size(n).links == 1);
      RC_ASSERT(n.plane < shape.planes);
      if (n.kind == LinkKind::nic_out) RC_ASSERT(n.group == router->nic_of(a));
      if (n.kind == LinkKind::nic_in) RC_ASSERT(n.group == router->nic_of(b));
      if (n.kind != LinkKind::up && n.kind != LinkKind::down) continue;
      const ClosTier& lower = shape.tiers[n.tier];
      RC_ASSERT(n.group >= 0 && n.group < lower.groups);
      RC_ASSERT(n.lower >= 0 && n.lower < lower.switches);
      RC_ASSERT(n.parallel >= 0 && n.parallel < lower.parallel);
      const std::int64_t above = n.tier == 0 ? shape.tiers[1].switches
                                 : dragonfly ? lower.groups
                                             : lower.up / lower.parallel;
      RC_ASSERT(n.upper >= 0 && n.upper < above);
      if (n.tier == 0) {
        const std::int64_t leaf = n.group * lower.switches + n.lower;
        RC_ASSERT(leaf == router->leaf_of(n.kind == LinkKind::up ? a : b));
      }
    }
  }));
}

TEST_CASE("a hashed route is what its queue pairs take together", "[routing][law]") {
  CHECK(rc::check([] {
    Case c = random_case(*rc::gen::arbitrary<bool>());
    c.options.routing = Routing::ecmp;
    c.options.paths_per_flow = *rc::gen::inRange<std::int64_t>(1, 20);
    const std::optional<Router> router = build(c, false);
    RC_PRE(router.has_value());
    const auto [a, b] = random_pair(c.fabric, c.accelerators);
    Pairs pairs;
    router->route_pairs(a, b, 7, pairs);
    std::map<std::int64_t, double> shares;
    for (const NumberedLink& pair : pairs) {
      RC_ASSERT(pair.number == router->number(pair.route.link));
      shares[pair.number] += pair.route.share;
    }
    Links whole = route(*router, a, b, 7);
    std::erase_if(whole, [](const RouteLink& l) {
      return l.link.kind == LinkKind::site_out || l.link.kind == LinkKind::site_in;
    });
    RC_ASSERT(shares.size() == whole.size());
    for (const RouteLink& l : whole) RC_ASSERT(shares.at(router->number(l.link)) == l.share);
  }));
}

TEST_CASE("accelerators use the leaves that the shape counts", "[routing][law]") {
  CHECK(rc::check([] {
    const Case c = random_case(false);
    const std::optional<Router> router = build(c, true);
    std::set<std::int64_t> leaves;
    std::map<std::int64_t, double> ports;
    for (std::int64_t g = 0; g < c.accelerators; ++g) {
      leaves.insert(router->leaf_of(g));
      ports[router->leaf_of(g)] += router->shape().ports_per_accelerator;
    }
    RC_ASSERT(std::ssize(leaves) * router->shape().planes <= router->shape().switches(0));
    // An accelerator is on one leaf with all its NICs, also where that takes a port too many.
    for (const auto& [leaf, used] : ports)
      RC_ASSERT(used < static_cast<double>(router->shape().tiers[0].down) +
                           std::max(1.0, router->shape().ports_per_accelerator));
  }));
}

LinkName mirrored(LinkName n, bool dragonfly) {
  constexpr LinkKind other[] = {LinkKind::nic_in, LinkKind::nic_out, LinkKind::down,
                                LinkKind::up,     LinkKind::site_in, LinkKind::site_out};
  if (dragonfly && n.tier == 1) {
    const std::int64_t group = n.group;
    n.group = n.upper;
    n.upper = static_cast<std::int32_t>(group);
    return n;
  }
  n.kind = other[static_cast<int>(n.kind)];
  return n;
}

TEST_CASE("the way back mirrors the way there", "[routing][law]") {
  CHECK(rc::check([] {
    const Case c = random_case(*rc::gen::arbitrary<bool>());
    const std::optional<Router> router = build(c, *rc::gen::arbitrary<bool>());
    const auto [a, b] = random_pair(c.fabric, c.accelerators);
    const bool dragonfly = c.fabric.scale_out.kind == ScaleOutKind::dragonfly_plus;
    std::map<LinkName, double> there, back;
    for (const RouteLink& l : route(*router, a, b)) there[mirrored(l.link, dragonfly)] = l.share;
    for (const RouteLink& l : route(*router, b, a)) back[l.link] = l.share;
    RC_ASSERT(there == back);
  }));
}

// Links by what a flow sees of them. Equal maps: the same links with the same bits.
std::map<std::vector<double>, std::int64_t> seen_by(const Router& router, const Links& links) {
  std::map<std::vector<double>, std::int64_t> seen;
  for (const RouteLink& l : links) {
    const BundleSize size = router.size(l.link);
    const double leaf = l.link.tier == 0 ? l.link.lower : 0;
    seen[{static_cast<double>(l.link.kind), static_cast<double>(l.link.tier), leaf,
          static_cast<double>(l.link.group), l.share, size.capacity}] += size.links;
  }
  return seen;
}

TEST_CASE("bundles are the links they stand for, to the bit", "[routing][law]") {
  CHECK(rc::check([] {
    const Case c = random_case(*rc::gen::inRange(0, 3) > 0);
    const std::optional<Router> bundled = build(c, true), single = build(c, false);
    RC_ASSERT(bundled.has_value() == single.has_value());
    const auto [a, b] = random_pair(c.fabric, c.accelerators);
    const Links few = route(*bundled, a, b), all = route(*single, a, b);
    RC_ASSERT(seen_by(*bundled, few) == seen_by(*single, all));
    if (c.faults.empty()) {  // nothing to tell apart: one entry a hop
      RC_ASSERT(few.size() <= 8U);
    }
  }));
}

TEST_CASE("a NIC that is gone cuts its accelerators off, wherever it is", "[routing][law]") {
  CHECK(rc::check([] {
    Case c = random_case(false);
    // The fewer domains, the fewer others that could show it.
    if (c.fabric.sites.accelerators == 0)
      c.accelerators = c.fabric.scale_up.domain * *rc::gen::inRange<std::int64_t>(2, 4);
    RC_PRE(build(c, true).has_value());
    for (std::int64_t gone = 0; gone < std::min<std::int64_t>(c.accelerators, 100); ++gone) {
      c.faults = {{.kind = FaultKind::nic, .accelerator = gone, .plane = -1, .remaining = 0}};
      RC_ASSERT_FALSE(build(c, true).has_value());
    }
  }));
}

TEST_CASE("faults elsewhere leave a path as it was", "[routing][law]") {
  CHECK(rc::check([] {
    Case c = random_case(true);
    if (*rc::gen::inRange(0, 3) == 0) c.options.routing = Routing::ecmp;
    const std::optional<Router> healthy = build(c, false, false), faulted = build(c, false);
    RC_PRE(faulted.has_value());
    const auto [a, b] = random_pair(c.fabric, c.accelerators);
    // All links that a spraying flow of the pair may use.
    Case sprayed = c;
    sprayed.options.routing = Routing::spray;
    const std::optional<Router> every = build(sprayed, false, false);
    bool touched = false;
    for (const RouteLink& l : route(*every, a, b))
      touched |= faulted->size(l.link).capacity != healthy->size(l.link).capacity;
    const Links before = route(*healthy, a, b), after = route(*faulted, a, b);
    if (touched) return;
    RC_ASSERT(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      RC_ASSERT(before[i].link == after[i].link);
      RC_ASSERT(before[i].share == after[i].share);
    }
  }));
}

TEST_CASE("tiers are those of the path cost on one rail", "[routing][law]") {
  CHECK(rc::check([] {
    const Case c = random_case(false);
    RC_PRE(c.fabric.sites.accelerators == 0);
    const std::optional<Router> router = build(c, true);
    const ClosShape& shape = router->shape();
    for (std::size_t t = 0; t + 1 < shape.tiers.size(); ++t)
      RC_PRE(shape.tiers[t].reach == c.fabric.scale_out.tiers[t].reach);
    RC_PRE(shape.tiers[0].switches <= shape.rails);
    const auto [a, other] = random_pair(c.fabric, c.accelerators);
    const std::int64_t domain = c.fabric.scale_up.domain;
    const std::int64_t b = other - other % domain + a % domain;
    RC_ASSERT(router->tier_between(a, b) == path_between(c.fabric, a, b).tier);
    RC_ASSERT(router->tier_between(a, other) >= path_between(c.fabric, a, other).tier);
  }));
}

TEST_CASE("sites add their long-haul links to a whole climb", "[routing]") {
  Fabric fabric = small_fabric();
  fabric.sites.accelerators = 64;
  fabric.sites.bandwidth = given(BytesPerSecond(1000));
  fabric.sites.efficiency = given(0.5);
  const Router router(fabric, 192, {});
  const Links far = route(router, 1, 130), near = route(router, 66, 80);
  REQUIRE(far.size() == 6);
  CHECK(far[4].link == LinkName{.kind = LinkKind::site_out, .group = 0});
  CHECK(far[5].link == LinkName{.kind = LinkKind::site_in, .group = 2});
  CHECK(far[5].share == 1);
  CHECK(router.size(far[5].link).capacity == 500);
  CHECK(near.size() == 4);
  CHECK(router.tier_between(1, 66) == 2);
  CHECK(near[1].link.group == 8);
}

TEST_CASE("dragonfly+ groups share their direct links out evenly", "[routing]") {
  Fabric fabric = small_fabric(ScaleOutKind::dragonfly_plus);
  ClosShape shape = small_pods();
  shape.accelerators = 160;
  shape.tiers[1].groups = 5;
  shape.tiers[1].parallel = 3;  // between two groups: one and a half for each of two spines
  shape.tiers[2] = {.reach = 160, .groups = 1};
  fabric.scale_out.tiers.push_back(fabric.scale_out.tiers[1]);
  const Router router(fabric, shape, {});
  const Links links = route(router, 0, 159);
  REQUIRE(links.size() == 5);
  CHECK(links[2].link == LinkName{.kind = LinkKind::up, .tier = 1, .upper = 4});
  CHECK(links[2].share == 0.5);
  CHECK(router.size(links[2].link).links == 2);
  CHECK(router.size(links[2].link).capacity == 150);
  CHECK(router.tier_between(0, 159) == 3);
  // A cable has two ends: named from either, it slows both ways.
  const NetworkFault fault{
      .kind = FaultKind::spine_core, .spine = 1, .pod = 4, .core = 0, .remaining = 0.5};
  const Router slow(fabric, shape, {}, {&fault, 1});
  for (const auto& [a, b] : {std::pair{0, 159}, {159, 0}})
    for (const RouteLink& l : route(slow, a, b))
      if (l.link.tier == 1) CHECK(l.share == Approx(l.link.lower == 1 ? 1.0 / 3 : 2.0 / 3));
  for (const RouteLink& l : route(slow, 0, 100))
    if (l.link.tier == 1) CHECK(l.share == 0.5);
}

}  // namespace
}  // namespace orrery
