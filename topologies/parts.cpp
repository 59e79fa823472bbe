// SPDX-License-Identifier: Apache-2.0
// Adds up a wiring's switches, cables and optics, in time that does not grow with it.
#include "topologies/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/text/enum_names.h"
#include "sim/base/whole.h"
#include "topologies/bisection.h"
#include "topologies/clos.h"
#include "topologies/scale_up.h"

namespace orrery {
namespace {

// Hosts that fit one rack with their leaf: four of eight accelerators. Denser racks leave no room.
constexpr std::int64_t in_rack = 32;

// Equal runs and equal switches of several domains or sites become one.
void add(FabricParts& parts, const SwitchCount& more, std::int64_t times = 1) {
  if (more.count == 0 || times == 0) return;
  for (SwitchCount& have : parts.switches) {
    if (have.role != more.role || have.part != more.part) continue;
    have.count += more.count * times;
    have.ports_used = std::max(have.ports_used, more.ports_used);
    return;
  }
  parts.switches.push_back(more);
  parts.switches.back().count *= times;
}

void add(FabricParts& parts, const CableRun& more, std::int64_t times = 1) {
  if (more.cables == 0 || times == 0) return;
  for (CableRun& have : parts.cables) {
    if (have.from != more.from || have.to != more.to || have.medium != more.medium ||
        have.rate != more.rate)
      continue;
    have.cables += more.cables * times;
    have.transceivers += more.transceivers * times;
    return;
  }
  parts.cables.push_back(more);
  parts.cables.back().cables *= times;
  parts.cables.back().transceivers *= times;
}

void add_note(FabricParts& parts, const std::string& note) {
  if (std::find(parts.notes.begin(), parts.notes.end(), note) == parts.notes.end())
    parts.notes.push_back(note);
}

CableRun cables(std::string from, std::string to, Medium medium, BytesPerSecond rate,
                std::int64_t count) {
  return {.from = std::move(from),
          .to = std::move(to),
          .medium = medium,
          .rate = rate,
          .cables = count,
          .transceivers = medium == Medium::optical ? 2 * count : 0};
}

// NIC to leaf is copper where the leaf stands in the rack of its hosts.
Medium nic_medium(FabricParts& parts, std::int64_t reach, std::int64_t rails) {
  const bool copper = rails == 1 && reach <= in_rack;
  add_note(parts, copper ? fmt::format("NIC to leaf on copper: a leaf serves {} accelerators, "
                                       "taken as one rack",
                                       reach)
                         : "NIC to leaf on optics: a leaf serves more than one rack");
  return copper ? Medium::copper : Medium::optical;
}

// What the scale-out network's bisection and diameter follow from.
struct Network {
  std::vector<CutLevel> levels;  // sizes in NICs
  double pairwise = 0;           // of the top level's nodes to each other; 0: they meet in a root
  int tiers = 0, diameter = 0;
};

// Nodes that the tree of a least cut passes through without a limit.
constexpr double unlimited = 1e300;

// The leaf level of a cut, and the groups of leaves, which have no links of their own.
void add_leaf_levels(const ClosShape& shape, double uplink, Network& net) {
  const ClosTier& leaf = shape.tiers[0];
  net.levels.push_back({.reach = leaf.down * shape.rails,
                        .up = uplink * static_cast<double>(shape.rails * leaf.up * shape.planes)});
  net.levels.push_back({.reach = ports_of(shape, leaf.reach), .up = unlimited});
}

Network add_network(const Fabric& fabric, const ClosShape& shape, FabricParts& parts) {
  const ScaleOut& out = fabric.scale_out;
  const ClosTier& leaf = shape.tiers[0];
  Network net;
  std::int64_t below = parts.nics * shape.planes;
  const auto leaf_reach =
      static_cast<std::int64_t>(static_cast<double>(std::min(leaf.down, parts.nics) * shape.rails) /
                                shape.ports_per_accelerator);
  add(parts,
      cables("nic", "leaf", nic_medium(parts, leaf_reach, shape.rails), link_below(out, 0), below));
  for (std::size_t i = 0; i < shape.tiers.size(); ++i) {
    const ClosTier& tier = shape.tiers[i];
    const std::int64_t count = shape.switches(i);
    net.tiers = static_cast<int>(i) + 1;
    add(parts, SwitchCount{.role = tier_role(i),
                           .part = out.tiers[i].switch_name,
                           .count = count,
                           .ports_used = ceil_div(below, count) + tier.up,
                           .ports = out.tiers[i].radix});
    if (out.tiers[i].radix == 0)
      add_note(parts,
               fmt::format("ports of {} are not stated: each {} is one as large as it must be",
                           out.tiers[i].switch_name, tier_role(i)));
    const bool last = i + 1 == shape.tiers.size(), pairs = last && shape.direct && tier.up > 0;
    if (last && !pairs) break;
    const BytesPerSecond rate = link_below(out, i + 1);
    below = shape.links_up(i);
    add(parts, cables(tier_role(i), tier_role(pairs ? i : i + 1), Medium::optical, rate, below));
    const std::int64_t group = ports_of(shape, tier.reach);
    if (i == 0) {
      add_leaf_levels(shape, rate.si(), net);
    } else if (pairs) {
      net.levels.push_back({.reach = group, .up = unlimited});
      net.pairwise = rate.si() * static_cast<double>(tier.parallel * shape.planes);
      if (shape.accelerators % (2 * tier.reach) != 0)
        add_note(parts,
                 "the halves part a dragonfly group, or the last is part full: the bisection is an "
                 "upper bound");
    } else {
      net.levels.push_back(
          {.reach = group,
           .up = rate.si() * static_cast<double>(tier.switches * tier.up * shape.planes)});
    }
  }
  net.diameter = 2 * net.tiers - (net.pairwise > 0 ? 0 : 1);
  return net;
}

void add_domains(const Fabric& fabric, FabricParts& parts) {
  const ScaleUp& up = fabric.scale_up;
  const std::int64_t full = parts.accelerators / up.domain, rest = parts.accelerators % up.domain;
  for (const auto& [members, times] :
       {std::pair{up.domain, full}, std::pair{rest, std::int64_t{1}}}) {
    if (members == 0 || times == 0) continue;
    const DomainParts domain = domain_parts(up, members);
    for (const SwitchCount& count : domain.switches) add(parts, count, times);
    for (const CableRun& run : domain.cables) add(parts, run, times);
    for (const std::string& note : domain.notes) add_note(parts, note);
    // Those of a whole domain, where there is one.
    if (members == up.domain || full == 0) {
      parts.scale_up_bisection = domain.bisection;
      parts.scale_up_diameter = domain.diameter;
    }
  }
}

// The long haul: a pair of sites has an equal share of what a site can send, which is returned.
double add_long_haul(const Fabric& fabric, std::int64_t sites, FabricParts& parts) {
  const BytesPerSecond pair = fabric.sites.bandwidth.get() / static_cast<double>(sites - 1);
  add(parts, {.role = "long-haul", .count = sites, .ports_used = sites - 1}, 1);
  add(parts, cables("long-haul", "long-haul", Medium::optical, pair, sites * (sites - 1) / 2), 1);
  add_note(
      parts,
      "each pair of sites is joined by one link with its share of a site's bandwidth; how many "
      "wavelengths carry it is not stated");
  return pair.si();
}

// No path between rails but through the domains: all NICs of an accelerator are on one rail.
bool rails_apart(const Fabric& fabric, const ClosShape& shape) {
  return fabric.scale_out.kind == ScaleOutKind::rail_only && shape.rails > 1;
}

}  // namespace

std::string_view to_text(Medium medium) {
  constexpr auto texts = enum_names<Medium>({"backplane", "copper", "optical"});
  return texts[medium];
}

std::string tier_role(std::size_t tier) {
  constexpr std::array<const char*, 3> roles = {"leaf", "spine", "core"};
  return tier < roles.size() ? roles[tier] : fmt::format("tier-{}", tier + 1);
}

std::int64_t FabricParts::switch_count(std::string_view role) const {
  std::int64_t sum = 0;
  for (const SwitchCount& item : switches)
    if (item.role == role) sum += item.count;
  return sum;
}

std::int64_t FabricParts::cable_count(std::string_view from, std::string_view to) const {
  std::int64_t sum = 0;
  for (const CableRun& run : cables)
    if (run.from == from && run.to == to) sum += run.cables;
  return sum;
}

LeafPlan::LeafPlan(const Fabric& fabric, const ClosShape& clos)
    : shape(clos), domain(fabric.scale_up.domain) {
  per_rail = std::max<std::int64_t>(1, shape.tiers[0].switches / shape.rails);
  in_domain = ceil_div(shared_nic(domain - 1) + 1, shape.rails);
}

std::int64_t LeafPlan::shared_nic(std::int64_t accelerator) const {
  const double shared = std::min(1.0, shape.ports_per_accelerator);
  return static_cast<std::int64_t>(static_cast<double>(accelerator) * shared + 1e-9);
}

std::int64_t LeafPlan::leaves_of_rail(std::int64_t group) const {
  const ClosTier& leaf = shape.tiers[0];
  const std::int64_t rest = std::min(leaf.reach, shape.accelerators - group * leaf.reach);
  if (rest == leaf.reach) return per_rail;
  return ceil_div(ceil_div(ports_of(shape, rest), shape.rails), leaf.down);
}

LeafPlan::Place LeafPlan::of(std::int64_t accelerator) const {
  const ClosTier& leaf = shape.tiers[0];
  const double each = std::max(1.0, shape.ports_per_accelerator);
  const std::int64_t nic = shared_nic(accelerator % domain);
  Place place{.group = accelerator / leaf.reach, .rail = nic % shape.rails};
  const std::int64_t first = accelerator % leaf.reach / domain * in_domain;
  const auto port = static_cast<std::int64_t>(static_cast<double>(first + nic / shape.rails) *
                                              std::floor(each + 1e-9));
  place.leaf = std::min(leaves_of_rail(place.group) - 1, port / leaf.down);
  return place;
}

FabricParts fabric_parts(const Fabric& fabric, std::int64_t accelerators) {
  CHECK_THAT(accelerators >= 1, "a wiring of nothing");
  const ScaleOut& out = fabric.scale_out;
  const std::int64_t domain = fabric.scale_up.domain;
  FabricParts parts{.accelerators = accelerators,
                    .domains = ceil_div(accelerators, domain),
                    .planes = out.planes,
                    .rails = out.rails};
  if (out.kind == ScaleOutKind::none && parts.domains > 1)
    throw Error(
        {.file = fabric.name,
         .path = "scale_out",
         .found = fmt::format("{} accelerators", accelerators),
         .expected = fmt::format("at most {}: this fabric has no scale-out network", domain)});
  if (out.kind == ScaleOutKind::torus)
    throw Error({.file = fabric.name,
                 .path = "scale_out.kind",
                 .found = "torus",
                 .expected = "a switched network: a torus is counted as a scale-up domain"});
  add_domains(fabric, parts);
  const ClosShape shape = bought_shape(fabric, accelerators);
  if (out.kind != ScaleOutKind::none && shape.tiers.empty())
    add_note(parts,
             "one scale-up domain: no scale-out network joins anything, and none is counted");
  if (shape.tiers.empty()) return parts;
  parts.rails = shape.rails;
  parts.nics = ports_of(shape, accelerators);
  Network net = add_network(fabric, shape, parts);
  if (shape.sites) {
    const std::int64_t site = fabric.sites.accelerators;
    const std::int64_t sites = ceil_div(accelerators, site);
    if (net.pairwise > 0)
      add_note(parts, "between sites, the dragonfly inside each is taken as without limit");
    net.levels.push_back({.reach = ports_of(shape, site), .up = unlimited});
    net.pairwise = add_long_haul(fabric, sites, parts);
    // Up to the top of one site, a gateway, the other's gateway, and down again.
    net.diameter = 2 * net.tiers + 2;
  }
  if (parts.domains == 1) return parts;
  const double nic = out.nic_bandwidth.get().si();
  parts.scale_out_bisection = BytesPerSecond(least_cut(
      nic, net.levels, parts.nics, ports_of(shape, parts.domains / 2 * domain), net.pairwise));
  parts.scale_out_diameter = net.diameter;
  if (rails_apart(fabric, shape)) {
    parts.scale_out_diameter += parts.scale_up_diameter;
    add_note(parts,
             "rails meet only inside the scale-up domains: a path to another rail passes through "
             "one more");
  }
  return parts;
}

std::int64_t most_joined(const Fabric& fabric, std::int64_t most) {
  CHECK_THAT(most >= 1, "a wiring of nothing");
  const auto joins = [&](std::int64_t accelerators) {
    try {
      fabric_parts(fabric, accelerators);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  if (joins(most)) return most;
  std::int64_t good = 1, bad = most;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (joins(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace orrery
