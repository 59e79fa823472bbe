// Knows how a wiring is read from its catalogue file, and what a path through it costs.
#include "topologies/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery {
namespace {

constexpr std::array<std::string_view, 4> scale_up_text = {"switched", "mesh", "torus", "none"};
constexpr std::array<std::string_view, 5> scale_out_text = {"none", "fat-tree", "rail-optimised",
                                                            "rail-only", "torus"};
constexpr std::array<std::string_view, 8> technology_text = {
    "infiniband", "spectrum-x", "roce", "efa", "omnipath", "slingshot", "ici", "tcpx"};

template <class Enum, std::size_t n>
Enum read_enum(const JsonValue& at, const std::array<std::string_view, n>& texts) {
  const std::string text = at.one_of({texts.begin(), texts.end()});
  const auto found = std::find(texts.begin(), texts.end(), text);
  return static_cast<Enum>(found - texts.begin());
}

ScaleUp read_scale_up(const JsonValue& at) {
  at.expect_only(
      {"kind", "link", "domain", "bandwidth", "latency", "torus_axes", "in_network_reduction"});
  ScaleUp up;
  up.kind = read_enum<ScaleUpKind>(at.at("kind"), scale_up_text);
  up.link = at.at("link").text();
  up.domain = at.at("domain").integer(1, INT64_C(1) << 40);
  up.bandwidth = read_sourced<BytesPerSecond>(at.at("bandwidth"));
  up.latency = read_sourced<Seconds>(at.at("latency"));
  if (!up.bandwidth.known()) at.at("bandwidth").fail("a value: collectives need it");
  if (!up.latency.known()) at.at("latency").fail("a value: collectives need it");
  if (const auto axes = at.find("torus_axes")) {
    if (up.kind != ScaleUpKind::torus) axes->fail("this key in a torus only");
    up.torus_axes = axes->integer(1, 3);
  }
  if (const auto reduce = at.find("in_network_reduction"))
    up.in_network_reduction = reduce->boolean();
  return up;
}

Tier read_tier(const JsonValue& at) {
  at.expect_only({"switch", "reach", "oversubscription", "latency"});
  Tier tier;
  tier.switch_name = at.at("switch").text();
  tier.reach = at.at("reach").integer(0, INT64_C(1) << 40);
  tier.oversubscription = read_sourced<double>(at.at("oversubscription"));
  tier.latency = read_sourced<Seconds>(at.at("latency"));
  if (!tier.oversubscription.known() || !(tier.oversubscription.get() > 0))
    at.at("oversubscription").fail("a ratio above 0");
  if (!tier.latency.known()) at.at("latency").fail("a value");
  return tier;
}

ScaleOut read_scale_out(const JsonValue& at) {
  ScaleOut out;
  out.kind = read_enum<ScaleOutKind>(at.at("kind"), scale_out_text);
  if (out.kind == ScaleOutKind::none) {
    at.expect_only({"kind"});
    const std::string reason = "this fabric has no scale-out network";
    out.nics_per_accelerator.reason = out.nic_bandwidth.reason = out.nic_latency.reason =
        out.efficiency.reason = reason;
    return out;
  }
  at.expect_only({"kind", "technology", "nic", "nics_per_accelerator", "planes", "nic_bandwidth",
                  "nic_latency", "efficiency", "tiers", "in_network_reduction"});
  out.technology = read_enum<FabricTechnology>(at.at("technology"), technology_text);
  out.nic = at.at("nic").text();
  out.nics_per_accelerator = read_sourced<double>(at.at("nics_per_accelerator"));
  out.nic_bandwidth = read_sourced<BytesPerSecond>(at.at("nic_bandwidth"));
  out.nic_latency = read_sourced<Seconds>(at.at("nic_latency"));
  out.efficiency = read_sourced<double>(at.at("efficiency"));
  for (const char* key : {"nics_per_accelerator", "nic_bandwidth", "nic_latency", "efficiency"})
    if (at.at(key).at("value").is_null()) at.at(key).fail("a value: collectives need it");
  if (const auto planes = at.find("planes")) out.planes = planes->integer(1, 64);
  if (const auto reduce = at.find("in_network_reduction"))
    out.in_network_reduction = reduce->boolean();
  const auto tiers = at.at("tiers").items();
  if (tiers.empty()) at.at("tiers").fail("at least one tier");
  std::int64_t reach = 0;
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    out.tiers.push_back(read_tier(tiers[i]));
    const bool last = i + 1 == tiers.size();
    const std::int64_t next = out.tiers.back().reach;
    if (last ? next != 0 : next <= reach)
      tiers[i].at("reach").fail(last ? "0: the last tier reaches all"
                                     : fmt::format("more than the tier before it ({})", reach));
    reach = next;
  }
  return out;
}

[[noreturn]] void no_scale_out(const Fabric& fabric, std::int64_t span) {
  throw Error({.file = fabric.name,
               .path = "scale_out",
               .found = fmt::format("a group over {} accelerators", span),
               .expected = fmt::format("at most {}: this fabric has no scale-out network",
                                       fabric.scale_up.domain)});
}

// The path through tiers 0 to `tier`: latencies add up, and every tier passed upwards tapers.
PathCost through(const ScaleOut& out, std::size_t tier, double nics) {
  double seconds = out.nic_latency.get().si() + out.tiers[tier].latency.get().si();
  double taper = 1;
  for (std::size_t i = 0; i < tier; ++i) {
    seconds += out.tiers[i].latency.get().si();
    taper *= out.tiers[i].oversubscription.get();
  }
  return {.latency = Seconds(seconds),
          .bandwidth = out.nic_bandwidth.get() * (nics * out.efficiency.get() / taper),
          .tier = static_cast<int>(tier) + 1};
}

}  // namespace

std::string_view to_text(ScaleUpKind k) { return scale_up_text[static_cast<std::size_t>(k)]; }
std::string_view to_text(ScaleOutKind k) { return scale_out_text[static_cast<std::size_t>(k)]; }
std::string_view to_text(FabricTechnology t) {
  return technology_text[static_cast<std::size_t>(t)];
}

Fabric read_fabric(const JsonValue& file) {
  file.expect_only({"name", "title", "based_on", "scale_up", "scale_out"});
  Fabric fabric;
  fabric.name = file.at("name").text();
  fabric.title = file.at("title").text();
  fabric.scale_up = read_scale_up(file.at("scale_up"));
  fabric.scale_out = read_scale_out(file.at("scale_out"));
  return fabric;
}

PathCost path_between(const Fabric& fabric, std::int64_t a, std::int64_t b) {
  const ScaleUp& up = fabric.scale_up;
  if (a / up.domain == b / up.domain) {
    // A pair has all of a switched domain, and one link of a mesh or a torus.
    return {.latency = up.latency.get(), .bandwidth = scale_up_share(up, 2), .tier = 0};
  }
  const ScaleOut& out = fabric.scale_out;
  if (out.kind == ScaleOutKind::none) no_scale_out(fabric, std::abs(a - b) + 1);
  std::size_t tier = 0;
  while (out.tiers[tier].reach != 0 && a / out.tiers[tier].reach != b / out.tiers[tier].reach)
    ++tier;
  return through(out, tier, out.nics_per_accelerator.get());
}

PathCost nic_path(const Fabric& fabric, std::int64_t span) {
  const ScaleOut& out = fabric.scale_out;
  if (out.kind == ScaleOutKind::none) no_scale_out(fabric, span);
  std::size_t tier = 0;
  while (out.tiers[tier].reach != 0 && out.tiers[tier].reach < span) ++tier;
  return through(out, tier, 1);
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
      // Slices are built of rings of four (a TPU cube is 4 x 4 x 4): four ranks fill an axis,
      // sixteen a plane. A pair has no ring: one link.
      const double link = 0.5 / static_cast<double>(scale_up.torus_axes);
      if (ranks < 4) return all * link;
      const std::int64_t axes = ranks < 16 ? 1 : ranks < 64 ? 2 : 3;
      return all * (2 * link * static_cast<double>(std::min(axes, scale_up.torus_axes)));
    }
  }
  return all;
}

}  // namespace orrery
