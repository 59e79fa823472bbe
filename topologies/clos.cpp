// SPDX-License-Identifier: Apache-2.0
// Knows how reach, rails, radix and tapering make the switches and links of a fabric.
#include "topologies/clos.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/errors/check.h"
#include "sim/base/whole.h"

namespace orrery {
namespace {

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

// Ports or links, where the product of a count and a ratio is a whole number but for rounding.
std::int64_t ceil_count(double count) {
  const double whole = std::round(count);
  return static_cast<std::int64_t>(
      std::abs(count - whole) <= 1e-9 * std::abs(count) ? whole : std::ceil(count));
}

// The least divisor of `links` that is at least `least`; none above `links`.
std::optional<std::int64_t> equal_share(std::int64_t links, std::int64_t least) {
  for (std::int64_t d = std::max<std::int64_t>(1, least); d <= links; ++d)
    if (links % d == 0) return d;
  return std::nullopt;
}

// What a wiring says of one tier, as counts of ports.
struct Ports {
  const ScaleOut& out;
  std::size_t tier;
  // Ports that a link up takes, in ports of the rate below.
  std::int64_t width() const {
    const double ratio = link_below(out, tier + 1) / link_below(out, tier);
    return std::max<std::int64_t>(1, std::llround(ratio));
  }
  std::int64_t up(std::int64_t down) const {
    const double taper = out.tiers[tier].oversubscription.get();
    return std::max<std::int64_t>(
        1, ceil_count(static_cast<double>(down) / (taper * static_cast<double>(width()))));
  }
  // The most links down of a switch that keeps ports for its links up.
  std::int64_t most_down(bool last) const {
    const std::int64_t radix = out.tiers[tier].radix;
    if (radix == 0) return no_limit;
    if (last) return radix;
    const double taper = out.tiers[tier].oversubscription.get();
    auto down = static_cast<std::int64_t>(static_cast<double>(radix) * taper / (1 + taper)) + 1;
    while (down > 0 && (down > radix || down + up(down) * width() > radix)) --down;
    return down;
  }
};

// Leaves of one plane at so many accelerators: full groups, and what the last one needs.
std::int64_t leaves_of(const ClosShape& shape, std::int64_t accelerators) {
  const ClosTier& leaf = shape.tiers.front();
  const std::int64_t rest = accelerators % leaf.reach;
  const std::int64_t in_rail = ceil_div(ports_of(shape, rest), shape.rails);
  return accelerators / leaf.reach * leaf.switches + shape.rails * ceil_div(in_rail, leaf.down);
}

ClosTier leaf_tier(const ScaleOut& out, const ClosShape& shape) {
  const Ports ports{out, 0};
  const bool alone = out.tiers.size() == 1;
  ClosTier leaf;
  leaf.reach = alone ? shape.accelerators : out.tiers[0].reach;
  const std::int64_t in_rail = ceil_div(ports_of(shape, leaf.reach), shape.rails);
  const std::int64_t most = ports.most_down(alone);
  if (most < 1) return leaf;
  const std::int64_t per_rail = ceil_div(in_rail, most);
  leaf.switches = shape.rails * per_rail;
  leaf.down = in_rail % per_rail == 0 ? in_rail / per_rail : most;
  leaf.up = alone ? 0 : ports.up(leaf.down);
  leaf.groups = ceil_div(shape.accelerators, leaf.reach);
  return leaf;
}

// Adds tier shape.tiers.size() as one that more tiers follow. False when no switch of it can take
// the links of one group below.
bool add_middle(const ScaleOut& out, std::int64_t columns, ClosShape& shape) {
  const std::size_t t = shape.tiers.size();
  ClosTier& below = shape.tiers.back();
  const Ports ports{out, t};
  const std::int64_t most = ports.most_down(false);
  // What one switch of a column sees: all leaves (of its rail), or one switch of every group.
  const std::int64_t per_group = t == 1 ? below.switches / columns : 1;
  const std::int64_t groups =
      std::min(std::max<std::int64_t>(1, out.tiers[t].reach / below.reach), most / per_group);
  if (groups < 1) return false;
  const std::int64_t links = groups * per_group * below.up;
  const auto share = equal_share(below.up, out.tiers[t].radix == 0 ? 1 : ceil_div(links, most));
  if (!share) return false;
  below.parallel = below.up / *share;
  ClosTier tier;
  tier.reach = groups * below.reach;
  tier.groups = ceil_div(shape.accelerators, tier.reach);
  tier.switches = columns * *share;
  tier.down = links / *share;
  tier.up = ports.up(tier.down);
  shape.tiers.push_back(tier);
  return true;
}

// Adds the last tier, sized for the accelerators at hand.
bool add_last(const ScaleOut& out, std::int64_t columns, ClosShape& shape) {
  const std::size_t t = shape.tiers.size();
  ClosTier& below = shape.tiers.back();
  const std::int64_t members =
      t == 1 ? leaves_of(shape, shape.accelerators) / columns : below.groups;
  const std::int64_t links = members * below.up;
  const std::int64_t radix = out.tiers[t].radix;
  const auto share = equal_share(below.up, radix == 0 ? 1 : ceil_div(links, radix));
  if (!share) return false;
  below.parallel = below.up / *share;
  shape.tiers.push_back({.reach = shape.accelerators,
                         .groups = 1,
                         .switches = columns * *share,
                         .down = links / *share});
  return true;
}

// Gives a leaf that serves a whole machine, smaller than what the wiring lets it serve, no more
// links up than its NICs need, but so many that they divide evenly over the fewest spines.
void trim_uplinks(const ScaleOut& out, ClosShape& shape) {
  ClosTier& leaf = shape.tiers[0];
  const std::int64_t in_rail = ceil_div(ports_of(shape, leaf.reach), shape.rails);
  // All NICs of an accelerator are on one leaf.
  const auto each = static_cast<std::int64_t>(std::max(1.0, shape.ports_per_accelerator));
  const std::int64_t even = ceil_div(ceil_div(in_rail, leaf.switches / shape.rails), each) * each;
  leaf.down = std::min(leaf.down, even);
  const std::int64_t most = leaf.up, radix = out.tiers[1].radix;
  const std::int64_t columns = out.kind == ScaleOutKind::rail_only ? shape.rails : 1;
  const Ports ports{out, 0};
  std::int64_t fewest = no_limit;
  for (std::int64_t up = std::min(most, ports.up(leaf.down)); up <= most; ++up) {
    const std::int64_t links = leaf.switches / columns * up;
    const auto spines = equal_share(up, radix == 0 ? 1 : ceil_div(links, radix));
    if (!spines || *spines >= fewest) continue;
    fewest = *spines;
    leaf.up = up;
  }
}

// The shape with so many tiers; none when they do not join all accelerators.
std::optional<ClosShape> with_tiers(const ScaleOut& out, std::size_t count, ClosShape shape) {
  const bool apart = out.kind == ScaleOutKind::rail_only;
  const std::int64_t reach = out.tiers[count - 1].reach;
  if (reach != 0 && reach < shape.accelerators) return std::nullopt;
  shape.tiers = {leaf_tier(out, shape)};
  if (shape.tiers[0].switches == 0) return std::nullopt;
  if (count == 1) {
    const std::int64_t leaves = leaves_of(shape, shape.accelerators);
    if (leaves > (apart ? shape.rails : 1)) return std::nullopt;
    ClosTier& leaf = shape.tiers[0];
    leaf = {.reach = shape.accelerators, .groups = 1, .switches = leaves, .down = leaf.down};
    return shape;
  }
  for (std::size_t t = 1; t < count; ++t) {
    // Only tier 1 of a joined fabric is one column: all of its leaves meet all of its spines.
    const std::int64_t columns = t > 1 ? shape.tiers.back().switches : apart ? shape.rails : 1;
    const bool added =
        t + 1 < count ? add_middle(out, columns, shape) : add_last(out, columns, shape);
    if (!added) return std::nullopt;
  }
  return shape;
}

// Groups of leaves and spines; every spine has as many links to other groups as its taper leaves.
std::optional<ClosShape> dragonfly_plus_shape(const ScaleOut& out, ClosShape shape) {
  shape.tiers = {leaf_tier(out, shape)};
  if (shape.tiers[0].switches == 0 || !add_middle(out, 1, shape)) return std::nullopt;
  ClosTier& group = shape.tiers.back();
  shape.direct = true;
  if (group.groups == 1) {
    group.up = 0;
    return shape;
  }
  group.parallel = group.switches * group.up / (group.groups - 1);
  if (group.parallel == 0) return std::nullopt;
  return shape;
}

// One switch a plane that takes every NIC of a machine below a full group, whatever its rail; none
// where the NICs are too many or the size of the switch is not stated.
std::optional<ClosShape> one_switch(const ScaleOut& out, ClosShape shape) {
  const std::int64_t ports = ports_of(shape, shape.accelerators), reach = out.tiers[0].reach;
  if (ports > out.tiers[0].radix || (reach != 0 && shape.accelerators >= reach))
    return std::nullopt;
  shape.rails = 1;
  shape.tiers = {{.reach = shape.accelerators, .groups = 1, .switches = 1, .down = ports}};
  return shape;
}

// Two tiers for a machine that is smaller than one group of leaves.
std::optional<ClosShape> part_of_group(const ScaleOut& out, ClosShape shape) {
  if (out.tiers.size() < 2 || shape.accelerators >= out.tiers[0].reach) return std::nullopt;
  ScaleOut small = out;
  small.tiers[0].reach = shape.accelerators;
  if (auto alone = with_tiers(small, 1, shape)) return alone;
  // As many links up as a leaf of a full group has: the most that trimming may leave.
  shape.tiers = {leaf_tier(out, shape)};
  const std::int64_t most = shape.tiers[0].up;
  shape.tiers = {leaf_tier(small, shape)};
  if (shape.tiers[0].switches == 0) return std::nullopt;
  shape.tiers[0].up = std::max(shape.tiers[0].up, most);
  trim_uplinks(small, shape);
  const std::int64_t columns = out.kind == ScaleOutKind::rail_only ? shape.rails : 1;
  return add_last(small, columns, shape) ? std::optional(shape) : std::nullopt;
}

std::optional<ClosShape> one_site(const ScaleOut& out, const ClosShape& bare) {
  const bool groups = out.kind == ScaleOutKind::dragonfly_plus;
  // A leaf alone is the same in both; then a dragonfly+ has its groups whole from the first on.
  for (std::size_t count = 1; count <= (groups ? 1 : out.tiers.size()); ++count)
    if (auto shape = with_tiers(out, count, bare)) return shape;
  return groups ? dragonfly_plus_shape(out, bare) : std::nullopt;
}

ClosShape bare_shape(const ScaleOut& out, std::int64_t accelerators) {
  CHECK_THAT(accelerators >= 1, "a fabric without accelerators");
  ClosShape bare;
  bare.accelerators = accelerators;
  bare.planes = out.planes;
  bare.rails = out.rails;
  if (out.kind != ScaleOutKind::none && out.kind != ScaleOutKind::torus)
    bare.ports_per_accelerator = out.nics_per_accelerator.get();
  return bare;
}

[[noreturn]] void cannot_join(const Fabric& fabric, std::int64_t accelerators) {
  throw Error({.file = fabric.name,
               .path = "scale_out.tiers",
               .found = fmt::format("{} accelerators", accelerators),
               .expected = "no more than the ports of its switches join"});
}

}  // namespace

std::int64_t ports_of(const ClosShape& shape, std::int64_t accelerators) {
  return ceil_count(static_cast<double>(accelerators) * shape.ports_per_accelerator);
}

std::int64_t ClosShape::switches(std::size_t tier) const {
  ORRERY_CHECK(tier < tiers.size(), "a tier that the shape does not have");
  if (tier == 0) return planes * leaves_of(*this, accelerators);
  return planes * tiers[tier].groups * tiers[tier].switches;
}

std::int64_t ClosShape::links_up(std::size_t tier) const {
  ORRERY_CHECK(tier < tiers.size(), "a tier that the shape does not have");
  const ClosTier& t = tiers[tier];
  // A cable between two groups ends at both.
  if (direct && tier + 1 == tiers.size())
    return t.up == 0 ? 0 : planes * (t.groups * (t.groups - 1) / 2) * t.parallel;
  return switches(tier) * t.up;
}

ClosShape bought_shape(const Fabric& fabric, std::int64_t accelerators) {
  const ScaleOut& out = fabric.scale_out;
  ClosShape bare = bare_shape(out, accelerators);
  if (accelerators <= fabric.scale_up.domain || out.kind == ScaleOutKind::none) return bare;
  const bool in_groups = out.kind != ScaleOutKind::torus;
  const std::int64_t site = fabric.sites.accelerators;
  if (in_groups && (site == 0 || accelerators <= site)) {
    if (auto shape = one_switch(out, bare)) return *shape;
    if (out.kind != ScaleOutKind::dragonfly_plus)
      if (auto shape = part_of_group(out, bare)) return *shape;
  }
  return clos_shape(fabric, accelerators);
}

ClosShape clos_shape(const Fabric& fabric, std::int64_t accelerators) {
  const ScaleOut& out = fabric.scale_out;
  ClosShape bare = bare_shape(out, accelerators);
  if (out.kind == ScaleOutKind::none || out.kind == ScaleOutKind::torus) return bare;
  const std::int64_t site = fabric.sites.accelerators;
  const bool several = site != 0 && accelerators > site;
  if (several) bare.accelerators = site;
  auto shape = one_site(out, bare);
  if (!shape) cannot_join(fabric, bare.accelerators);
  if (!several) return *shape;
  shape->accelerators = accelerators;
  shape->sites = true;
  for (ClosTier& tier : shape->tiers) {
    // Groups are counted through all sites, so they must not straddle two.
    if (site % tier.reach != 0)
      throw Error({.file = fabric.name,
                   .path = "sites.accelerators",
                   .found = std::to_string(site),
                   .expected = fmt::format("a multiple of {}: whole pods", tier.reach)});
    tier.groups = ceil_div(accelerators, tier.reach);
  }
  return *shape;
}

TwoTier two_tier(std::int64_t endpoints, std::int64_t radix) {
  CHECK_THAT(endpoints >= 1 && radix >= 2 && radix % 2 == 0, "endpoints and an even radix");
  const std::int64_t down = radix / 2;
  const std::int64_t leaves = ceil_div(endpoints, down);
  const auto spines = equal_share(down, ceil_div(leaves * down, radix));
  if (!spines || leaves > radix)
    throw Error(
        {.found = fmt::format("{} endpoints", endpoints),
         .expected = fmt::format("at most {} in two tiers of {} ports", radix * down, radix)});
  return {.leaves = leaves, .spines = *spines, .uplinks = leaves * down};
}

ThreeTier three_tier(std::int64_t endpoints, std::int64_t radix) {
  CHECK_THAT(endpoints >= 1 && radix >= 2 && radix % 2 == 0, "endpoints and an even radix");
  const std::int64_t down = radix / 2;
  const std::int64_t leaves = ceil_div(endpoints, down);
  if (leaves > radix * down)
    throw Error({.found = fmt::format("{} endpoints", endpoints),
                 .expected = fmt::format("at most {} in three tiers of {} ports",
                                         radix * down * down, radix)});
  return {.leaves = leaves,
          .spines = leaves,
          .cores = ceil_div(leaves, 2),
          .leaf_spine = leaves * down,
          .spine_core = leaves * down};
}

}  // namespace orrery
