// SPDX-License-Identifier: Apache-2.0
// Reads a wiring from its catalogue file, and tells what a path through it costs.
#include "topologies/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery {
namespace {

constexpr auto scale_up_text = enum_names<ScaleUpKind>({"switched", "mesh", "torus", "none"});
constexpr auto scale_out_text = enum_names<ScaleOutKind>(
    {"none", "fat-tree", "rail-optimised", "rail-only", "torus", "dragonfly-plus"});
constexpr auto technology_text = enum_names<FabricTechnology>(
    {"infiniband", "spectrum-x", "roce", "efa", "omnipath", "slingshot", "ici", "tcpx"});

// Far above what any machine has, so that nothing that is computed from it leaves its range.
constexpr double most_rate = 1e18;  // bytes a second
constexpr double most_latency = seconds_per_hour;

// Refuses a value that is unknown, or that lies outside of its bounds at itself or an end of its
// range.
template <class T>
void expect_within(const JsonValue& at, const Sourced<T>& sourced, double least, double most,
                   const std::string& expected) {
  if (!sourced.known()) at.fail("a value: collectives need it");
  for (const auto& end : {sourced.value, sourced.low, sourced.high})
    if (end && !(in_si(*end) >= least && in_si(*end) <= most)) at.fail(expected);
}
// The least positive rate that still moves a byte within a century.
constexpr double least_rate = 1e-3;
void expect_rate(const JsonValue& at, const Sourced<BytesPerSecond>& rate) {
  expect_within(at, rate, least_rate, most_rate, "a rate above 0, at most 1e18 bytes a second");
}
void expect_latency(const JsonValue& at, const Sourced<Seconds>& latency) {
  expect_within(at, latency, 0, most_latency, "a time of 0 or more, at most an hour");
}
void expect_share(const JsonValue& at, const Sourced<double>& share) {
  expect_within(at, share, 1e-6, 1, "a share above 0, at most 1");
}

// What a domain is made of. All keys are optional: much of it is not published.
void read_scale_up_parts(const JsonValue& at, ScaleUp& up) {
  if (const auto links = at.find("links")) up.links = read_sourced<std::int64_t>(*links);
  if (up.links.known() && up.links.get() < 1) at.at("links").fail("at least one link");
  if (const auto levels = at.find("switches")) {
    if (up.kind != ScaleUpKind::switched) levels->fail("this key in a switched domain only");
    for (const JsonValue& item : levels->items()) {
      item.expect_only({"switch", "count", "reach"});
      ScaleUpLevel level;
      level.switch_name = item.at("switch").text();
      level.switches = read_sourced<std::int64_t>(item.at("count"));
      if (!level.switches.known() || level.switches.get() < 1)
        item.at("count").fail("at least one switch");
      if (const auto reach = item.find("reach")) level.reach = reach->integer(0, up.domain);
      if (!up.levels.empty() && (level.reach != 0 && level.reach <= up.levels.back().reach))
        item.at("reach").fail("more than the level before it");
      if (!up.levels.empty() && up.levels.back().reach == 0)
        item.fail("no level after one that reaches the whole domain");
      up.levels.push_back(std::move(level));
    }
    if (!up.levels.empty() && up.levels.back().reach != 0)
      levels->fail("a last level that reaches the whole domain (reach 0)");
    if (!up.links.known()) levels->fail("\"links\" beside it: those of one accelerator");
  }
  for (const char* key : {"cube", "circuit_switch", "axis_links"})
    if (const auto found = at.find(key); found && up.kind != ScaleUpKind::torus)
      found->fail("this key in a torus only");
  if (const auto cube = at.find("cube")) up.cube = cube->integer(2, 1024);
  if (const auto name = at.find("circuit_switch")) up.circuit_switch = name->text();
  if (const auto axes = at.find("axis_links")) {
    for (const JsonValue& item : axes->items())
      up.axis_links.push_back(read_sourced<BytesPerSecond>(item));
    for (const auto& link : up.axis_links) expect_rate(*axes, link);
    if (std::ssize(up.axis_links) != up.torus_axes) axes->fail("one rate for each axis");
  }
}

ScaleUp read_scale_up(const JsonValue& at) {
  at.expect_only({"kind", "link", "domain", "bandwidth", "latency", "torus_axes",
                  "in_network_reduction", "links", "switches", "cube", "circuit_switch",
                  "axis_links"});
  ScaleUp up;
  up.kind = scale_up_text.from(at.at("kind"));
  up.link = at.at("link").text();
  up.domain = at.at("domain").integer(1, INT64_C(1) << 40);
  up.bandwidth = read_sourced<BytesPerSecond>(at.at("bandwidth"));
  up.latency = read_sourced<Seconds>(at.at("latency"));
  expect_rate(at.at("bandwidth"), up.bandwidth);
  expect_latency(at.at("latency"), up.latency);
  if (const auto axes = at.find("torus_axes")) {
    if (up.kind != ScaleUpKind::torus) axes->fail("this key in a torus only");
    up.torus_axes = axes->integer(1, 3);
  }
  if (const auto reduce = at.find("in_network_reduction"))
    up.in_network_reduction = reduce->boolean();
  read_scale_up_parts(at, up);
  return up;
}

Tier read_tier(const JsonValue& at) {
  at.expect_only({"switch", "reach", "radix", "oversubscription", "latency", "uplink_bandwidth"});
  Tier tier;
  tier.switch_name = at.at("switch").text();
  tier.reach = at.at("reach").integer(0, INT64_C(1) << 40);
  if (const auto radix = at.find("radix")) tier.radix = radix->integer(2, 1 << 20);
  tier.oversubscription = read_sourced<double>(at.at("oversubscription"));
  tier.latency = read_sourced<Seconds>(at.at("latency"));
  expect_within(at.at("oversubscription"), tier.oversubscription, 1e-6, 1e6,
                "a ratio above 0, at most 1e6");
  expect_latency(at.at("latency"), tier.latency);
  if (const auto uplink = at.find("uplink_bandwidth")) {
    tier.uplink_bandwidth = read_sourced<BytesPerSecond>(*uplink);
    expect_rate(*uplink, tier.uplink_bandwidth);
  } else {
    tier.uplink_bandwidth.reason = "as fast as the links down";
  }
  return tier;
}

std::vector<Tier> read_tiers(const JsonValue& at) {
  const auto items = at.items();
  if (items.empty()) at.fail("at least one tier");
  std::vector<Tier> tiers;
  std::int64_t reach = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    tiers.push_back(read_tier(items[i]));
    const bool last = i + 1 == items.size();
    const std::int64_t next = tiers.back().reach;
    if (last ? next != 0 : next <= reach)
      items[i].at("reach").fail(last ? "0: the last tier reaches all"
                                     : fmt::format("more than the tier before it ({})", reach));
    if (last && tiers.back().uplink_bandwidth.known())
      items[i].at("uplink_bandwidth").fail("no such key: the last tier has no links up");
    reach = next;
  }
  return tiers;
}

// How many rails there are, how flows choose their paths, what is kept free.
void read_paths(const JsonValue& at, ScaleOut& out) {
  const bool railed =
      out.kind == ScaleOutKind::rail_optimised || out.kind == ScaleOutKind::rail_only;
  if (railed) {
    out.rails = at.at("rails").integer(1, 4096);
  } else if (const auto rails = at.find("rails")) {
    if (rails->integer() != 1)
      rails->fail(fmt::format("1, or no such key: a {} has no rails", to_text(out.kind)));
  }
  out.routing = routing_text.from(at.at("routing"));
  if (const auto paths = at.find("paths_per_flow")) {
    if (out.routing != Routing::ecmp) paths->fail("this key with ecmp only");
    out.paths_per_flow = paths->integer(1, 1024);
  }
  if (const auto reserved = at.find("reserved_hosts"))
    out.reserved_hosts = reserved->integer(0, 4096);
}

ScaleOut read_scale_out(const JsonValue& at) {
  ScaleOut out;
  out.kind = scale_out_text.from(at.at("kind"));
  if (out.kind == ScaleOutKind::none) {
    at.expect_only({"kind"});
    const std::string reason = "this fabric has no scale-out network";
    out.nics_per_accelerator.reason = out.nic_bandwidth.reason = out.nic_latency.reason =
        out.efficiency.reason = reason;
    return out;
  }
  at.expect_only({"kind", "technology", "nic", "nics_per_accelerator", "planes", "rails", "routing",
                  "paths_per_flow", "reserved_hosts", "nic_bandwidth", "nic_latency", "efficiency",
                  "tiers", "in_network_reduction"});
  out.technology = technology_text.from(at.at("technology"));
  out.nic = at.at("nic").text();
  out.nics_per_accelerator = read_sourced<double>(at.at("nics_per_accelerator"));
  out.nic_bandwidth = read_sourced<BytesPerSecond>(at.at("nic_bandwidth"));
  out.nic_latency = read_sourced<Seconds>(at.at("nic_latency"));
  out.efficiency = read_sourced<double>(at.at("efficiency"));
  expect_within(at.at("nics_per_accelerator"), out.nics_per_accelerator, 1e-6, 1024,
                "a number above 0, at most 1024");
  expect_rate(at.at("nic_bandwidth"), out.nic_bandwidth);
  expect_latency(at.at("nic_latency"), out.nic_latency);
  expect_share(at.at("efficiency"), out.efficiency);
  if (const auto planes = at.find("planes")) out.planes = planes->integer(1, 64);
  if (const auto reduce = at.find("in_network_reduction"))
    out.in_network_reduction = reduce->boolean();
  read_paths(at, out);
  const JsonValue tiers = at.at("tiers");
  if (out.kind == ScaleOutKind::dragonfly_plus && tiers.items().size() != 3)
    tiers.fail("three tiers: leaf, spine, and the links between groups");
  out.tiers = read_tiers(tiers);
  return out;
}

Sites read_sites(const JsonValue& at, const ScaleOut& out) {
  at.expect_only(
      {"accelerators", "bandwidth", "kilometres", "latency_per_kilometre", "efficiency"});
  if (out.kind == ScaleOutKind::none) at.fail("no such key: this fabric has no scale-out network");
  Sites sites;
  sites.accelerators = at.at("accelerators").integer(1, INT64_C(1) << 40);
  const std::int64_t leaf = out.tiers.front().reach;
  if (leaf != 0 && sites.accelerators % leaf != 0)
    at.at("accelerators").fail(fmt::format("a multiple of the first tier's reach ({})", leaf));
  sites.bandwidth = read_sourced<BytesPerSecond>(at.at("bandwidth"));
  sites.kilometres = read_sourced<double>(at.at("kilometres"));
  sites.latency_per_kilometre = read_sourced<Seconds>(at.at("latency_per_kilometre"));
  sites.efficiency = read_sourced<double>(at.at("efficiency"));
  expect_rate(at.at("bandwidth"), sites.bandwidth);
  expect_within(at.at("kilometres"), sites.kilometres, 0, 1e6,
                "a length of 0 or more, at most 1e6");
  expect_within(at.at("latency_per_kilometre"), sites.latency_per_kilometre, 0, 1,
                "a time of 0 or more, at most a second");
  expect_share(at.at("efficiency"), sites.efficiency);
  return sites;
}

[[noreturn]] void no_scale_out(const Fabric& fabric, std::int64_t span) {
  throw Error({.file = fabric.name,
               .path = "scale_out",
               .found = fmt::format("a group over {} accelerators", span),
               .expected = fmt::format("at most {}: this fabric has no scale-out network",
                                       fabric.scale_up.domain)});
}

// The path through tiers 0 to `tier`: latencies add up.
PathCost through(const ScaleOut& out, std::size_t tier, double nics) {
  double seconds = out.nic_latency.get().si() + out.tiers[tier].latency.get().si();
  for (std::size_t i = 0; i < tier; ++i) seconds += out.tiers[i].latency.get().si();
  return {.latency = Seconds(seconds),
          .bandwidth = out.nic_bandwidth.get() * (nics * out.efficiency.get()),
          .tier = static_cast<int>(tier) + 1};
}

// The same, then the fibre to another site. What shares the long haul is not the path's to say.
PathCost to_other_site(const Fabric& fabric, double nics) {
  const ScaleOut& out = fabric.scale_out;
  const Sites& sites = fabric.sites;
  PathCost path = through(out, out.tiers.size() - 1, nics);
  path.latency += sites.latency_per_kilometre.get() * sites.kilometres.get();
  path.bandwidth = std::min(path.bandwidth, sites.bandwidth.get() * sites.efficiency.get());
  ++path.tier;
  return path;
}

}  // namespace

Fabric::Fabric() = default;
Fabric::Fabric(const Fabric&) = default;
Fabric::Fabric(Fabric&&) noexcept = default;
Fabric& Fabric::operator=(const Fabric&) = default;
Fabric& Fabric::operator=(Fabric&&) noexcept = default;
Fabric::~Fabric() = default;

std::string_view to_text(ScaleUpKind k) { return scale_up_text[k]; }
std::string_view to_text(ScaleOutKind k) { return scale_out_text[k]; }
std::string_view to_text(FabricTechnology t) { return technology_text[t]; }

Fabric read_fabric(const JsonValue& file) {
  file.expect_only({"name", "title", "based_on", "scale_up", "scale_out", "sites"});
  Fabric fabric;
  fabric.name = file.at("name").text();
  fabric.title = file.at("title").text();
  fabric.scale_up = read_scale_up(file.at("scale_up"));
  fabric.scale_out = read_scale_out(file.at("scale_out"));
  if (const auto sites = file.find("sites")) fabric.sites = read_sites(*sites, fabric.scale_out);
  return fabric;
}

BytesPerSecond link_below(const ScaleOut& out, std::size_t tier) {
  CHECK_THAT(tier <= out.tiers.size(), "a tier that the fabric does not have");
  for (std::size_t t = tier; t > 0; --t)
    if (out.tiers[t - 1].uplink_bandwidth.known()) return out.tiers[t - 1].uplink_bandwidth.get();
  return out.nic_bandwidth.get() / static_cast<double>(out.planes);
}

PathCost path_between(const Fabric& fabric, std::int64_t a, std::int64_t b) {
  const ScaleUp& up = fabric.scale_up;
  if (a / up.domain == b / up.domain) {
    // A pair has all of a switched domain, and one link of a mesh or a torus.
    return {.latency = up.latency.get(), .bandwidth = scale_up_share(up, 2), .tier = 0};
  }
  const ScaleOut& out = fabric.scale_out;
  if (out.kind == ScaleOutKind::none) no_scale_out(fabric, std::abs(a - b) + 1);
  const std::int64_t site = fabric.sites.accelerators;
  if (site != 0 && a / site != b / site)
    return to_other_site(fabric, out.nics_per_accelerator.get());
  std::size_t tier = 0;
  while (out.tiers[tier].reach != 0 && a / out.tiers[tier].reach != b / out.tiers[tier].reach)
    ++tier;
  return through(out, tier, out.nics_per_accelerator.get());
}

PathCost nic_path(const Fabric& fabric, std::int64_t span) {
  const ScaleOut& out = fabric.scale_out;
  if (out.kind == ScaleOutKind::none) no_scale_out(fabric, span);
  if (fabric.sites.accelerators != 0 && fabric.sites.accelerators < span)
    return to_other_site(fabric, 1);
  std::size_t tier = 0;
  while (out.tiers[tier].reach != 0 && out.tiers[tier].reach < span) ++tier;
  return through(out, tier, 1);
}

std::int64_t torus_axes_spanned(const ScaleUp& scale_up, std::int64_t ranks) {
  const std::int64_t axes = ranks < 16 ? 1 : ranks < 64 ? 2 : 3;
  return std::min(axes, scale_up.torus_axes);
}

BytesPerSecond scale_up_share(const ScaleUp& scale_up, std::int64_t ranks) {
  const BytesPerSecond all = scale_up.bandwidth.get();
  switch (scale_up.kind) {
    case ScaleUpKind::switched:
    case ScaleUpKind::none:
      return all;
    case ScaleUpKind::mesh: {
      const std::int64_t links = std::max<std::int64_t>(1, scale_up.domain - 1);
      return all * (static_cast<double>(std::clamp<std::int64_t>(ranks - 1, 1, links)) /
                    static_cast<double>(links));
    }
    case ScaleUpKind::torus: {
      // An axis is two links. A pair has no ring: one link.
      const double link = 0.5 / static_cast<double>(scale_up.torus_axes);
      if (ranks < 4) return all * link;
      return all * (2 * link * static_cast<double>(torus_axes_spanned(scale_up, ranks)));
    }
  }
  return all;
}

}  // namespace orrery
