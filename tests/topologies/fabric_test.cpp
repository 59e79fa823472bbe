// SPDX-License-Identifier: Apache-2.0
// Knows what fabrics promise: every shipped wiring reads, paths cost what their tiers say.
#include "topologies/fabric.h"
#include "sim/base/json/tree.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

namespace orrery {
namespace {

const std::filesystem::path folder =
    std::filesystem::path(ORRERY_SOURCE_DIR) / "topologies/catalog";

Fabric load(const std::string& name) {
  return read_fabric(JsonValue::load(folder / (name + ".json")));
}

std::string message_of(const SortedJson& file) {
  try {
    read_fabric(JsonValue::from(file, "test.json"));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST_CASE("every shipped fabric reads and is called like its file", "[fabric]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    INFO(entry.path().string());
    const Fabric fabric = read_fabric(JsonValue::load(entry.path()));
    CHECK(fabric.name == entry.path().stem().string());
    CHECK(fabric.scale_up.bandwidth.get().si() > 1e9);
    CHECK(fabric.scale_up.domain >= 1);
    if (fabric.scale_out.kind != ScaleOutKind::none) {
      const PathCost far = path_between(fabric, 0, INT64_C(1) << 30);
      const int sites = fabric.sites.accelerators > 0 ? 1 : 0;
      CHECK(far.tier == static_cast<int>(fabric.scale_out.tiers.size()) + sites);
      CHECK(far.bandwidth.si() > 0);
      CHECK(far.bandwidth.si() < 1e12);
      CHECK(far.latency.si() > 1e-6);
      CHECK(far.latency.si() < (sites > 0 ? 1e-2 : 1e-4));
    }
    ++count;
  }
  CHECK(count >= 40);
}

TEST_CASE("a path costs its tiers", "[fabric]") {
  const Fabric h100 = load("nvlink4-ndr");
  const PathCost inside = path_between(h100, 0, 7);
  CHECK(inside.tier == 0);
  CHECK(inside.bandwidth.si() == Approx(450e9));
  const PathCost leaf = path_between(h100, 7, 8);
  CHECK(leaf.tier == 1);
  CHECK(leaf.bandwidth.si() == Approx(50e9 * 0.97));
  CHECK(leaf.latency.si() == Approx(2.8e-6));
  CHECK(path_between(h100, 255, 256).tier == 2);
  CHECK(path_between(h100, 255, 256).latency.si() == Approx(3.7e-6));
  CHECK(path_between(h100, 0, 1 << 20).tier == 3);

  // Meta's pods of 3,072 are tapered 7:1 to each other; what shares their links is not the path's
  // to say.
  const Fabric meta = load("nvlink4-roce");
  const PathCost within = path_between(meta, 0, 3071), across = path_between(meta, 3071, 3072);
  CHECK(across.tier == within.tier + 1);
  CHECK(across.latency.si() == Approx(within.latency.si() + 2e-6));
  CHECK(across.bandwidth.si() == within.bandwidth.si());
  CHECK(nic_path(meta, 3072).tier == within.tier);
  CHECK(nic_path(meta, 3073).tier == across.tier);

  // Four NICs for eight GPUs: half a NIC each.
  const Fabric half = load("nvlink3-4xhdr");
  CHECK(path_between(half, 0, 8).bandwidth.si() == Approx(0.5 * 25e9 * 0.73));
}

TEST_CASE("between sites a path costs the fibre", "[fabric]") {
  Fabric two = load("nvlink4-ndr-two-sites");
  const std::int64_t site = two.sites.accelerators;
  const PathCost near = path_between(two, 0, site - 1), far = path_between(two, site - 1, site);
  CHECK(far.tier == near.tier + 1);
  CHECK(far.latency.si() == Approx(near.latency.si() + 100 * 4.9e-6));
  CHECK(far.bandwidth.si() == near.bandwidth.si());
  CHECK(nic_path(two, site).tier == near.tier);
  CHECK(nic_path(two, site + 1).tier == far.tier);
  // Never more than the long haul carries.
  two.sites.bandwidth.value = bytes_per_second(1e9);
  CHECK(nic_path(two, site + 1).bandwidth.si() == Approx(0.9e9));
  CHECK(path_between(two, site - 1, site).bandwidth.si() == Approx(0.9e9));
}

TEST_CASE("a mesh and a torus give a group the links that it can use", "[fabric]") {
  const ScaleUp mesh = load("mi300x-roce").scale_up;
  CHECK(scale_up_share(mesh, 2).si() == Approx(64e9));
  CHECK(scale_up_share(mesh, 8).si() == Approx(448e9));
  const ScaleUp torus = load("ici-v7").scale_up;
  CHECK(scale_up_share(torus, 2).si() == Approx(100e9));
  CHECK(scale_up_share(torus, 4).si() == Approx(200e9));
  CHECK(scale_up_share(torus, 64).si() == Approx(600e9));
  const ScaleUp plane = load("ici-v5e").scale_up;
  CHECK(scale_up_share(plane, 256).si() == Approx(200e9));
  // Axes spanned, of as many as the torus has: those whose links the group uses.
  for (const auto& [ranks, axes] :
       {std::pair{4, 1}, {15, 1}, {16, 2}, {63, 2}, {64, 3}, {4096, 3}}) {
    CHECK(torus_axes_spanned(torus, ranks) == axes);
    CHECK(torus_axes_spanned(plane, ranks) == std::min(axes, 2));
    CHECK(scale_up_share(torus, ranks).si() == Approx(200e9 * axes));
  }
}

TEST_CASE("values of sites and of links up are visited where there are any", "[fabric]") {
  const auto paths = [](const std::string& name) {
    std::vector<std::string> seen;
    const Fabric fabric = load(name);
    visit_fabric_values(fabric,
                        [&](const std::string& path, const auto&) { seen.push_back(path); });
    return seen;
  };
  const auto count = [](const std::vector<std::string>& all, const std::string& path) {
    return std::count(all.begin(), all.end(), path);
  };
  CHECK(count(paths("nvlink4-ndr-two-sites"), "sites.kilometres") == 1);
  CHECK(count(paths("nvlink4-ndr"), "sites.kilometres") == 0);
  const std::string uplink = "scale_out.tiers[0].uplink_bandwidth";
  CHECK(count(paths("nvlink4-h800-hpn"), uplink) == 1);
  CHECK(count(paths("nvlink4-ndr"), uplink) == 0);
}

TEST_CASE("values that no machine has are refused, at either end of a range", "[fabric]") {
  const auto good = JsonValue::load(folder / "nvlink4-ndr.json").raw();
  const auto refused = [&](const std::string& path, const SortedJson& value) {
    auto bad = good;
    SortedJson& at = bad.at_path(path);
    for (const char* end : {"value", "low", "high"})
      if (at.contains(end)) at[end] = value;
    return message_of(bad);
  };
  for (const char* rate : {"0 Gbit/s", "1e300 B/s"}) {
    CHECK_THAT(refused("scale_out/nic_bandwidth", rate), Catch::Contains("nic_bandwidth"));
    CHECK_THAT(refused("scale_up/bandwidth", rate), Catch::Contains("scale_up.bandwidth"));
  }
  for (const SortedJson& share : {SortedJson(0), SortedJson(1.2)})
    CHECK_THAT(refused("scale_out/efficiency", share), Catch::Contains("at most 1"));
  CHECK_THAT(refused("scale_out/nics_per_accelerator", 0), Catch::Contains("above 0"));
  CHECK_THAT(refused("scale_out/nic_latency", "-1 us"), Catch::Contains("nic_latency"));
  CHECK_THAT(refused("scale_out/tiers/0/latency", "1e9 s"), Catch::Contains("at most an hour"));
  CHECK_THAT(refused("scale_out/tiers/1/oversubscription", 1e300), Catch::Contains("ratio"));
  CHECK(refused("scale_up/latency", "0 s").empty());
  auto bad = good;
  bad["scale_out"]["nic_bandwidth"]["evidence"] = "assumed";
  bad["scale_out"]["nic_bandwidth"]["low"] = "0 Gbit/s";
  bad["scale_out"]["nic_bandwidth"]["high"] = "800 Gbit/s";
  CHECK_THAT(message_of(bad), Catch::Contains("nic_bandwidth"));
}

TEST_CASE("mistakes in a fabric are named", "[fabric]") {
  const auto good = JsonValue::load(folder / "nvlink4-ndr.json").raw();
  auto bad = good;
  bad["scale_up"]["kind"] = "swiched";
  CHECK_THAT(message_of(bad), Catch::Contains("scale_up.kind") && Catch::Contains("switched"));
  bad = good;
  bad["scale_out"]["tiers"][0]["reach"] = 0;
  CHECK_THAT(message_of(bad), Catch::Contains("tiers[0].reach") || Catch::Contains("tiers[1]"));
  bad = good;
  bad["scale_out"]["tiers"] = SortedJson::array();
  CHECK_THAT(message_of(bad), Catch::Contains("at least one tier"));
  bad = good;
  bad["scale_up"]["bandwidth"]["value"] = 450;
  CHECK_THAT(message_of(bad), Catch::Contains("scale_up.bandwidth"));
  bad = good;
  bad["scale_out"]["nics"] = 8;
  CHECK_THAT(message_of(bad), Catch::Contains("scale_out.nics"));
  bad = good;
  bad["scale_out"].erase("routing");
  CHECK_THAT(message_of(bad), Catch::Contains("scale_out") && Catch::Contains("routing"));
  bad["scale_out"]["routing"] = "sprayed";
  CHECK_THAT(message_of(bad), Catch::Contains("scale_out.routing") && Catch::Contains("spray"));
  bad["scale_out"]["routing"] = "ecmp";
  bad["scale_out"]["paths_per_flow"] = 4;
  CHECK(message_of(bad).empty());
  CHECK(read_fabric(JsonValue::from(bad, "test.json")).scale_out.paths_per_flow == 4);
  bad["scale_out"]["routing"] = "adaptive";
  CHECK_THAT(message_of(bad), Catch::Contains("paths_per_flow") && Catch::Contains("ecmp"));
  bad = good;
  bad["scale_out"].erase("rails");
  CHECK_THAT(message_of(bad), Catch::Contains("rails"));
  bad["scale_out"]["kind"] = "fat-tree";
  CHECK(message_of(bad).empty());
  bad["scale_out"]["rails"] = 8;
  CHECK_THAT(message_of(bad), Catch::Contains("scale_out.rails") && Catch::Contains("fat-tree"));
  bad["scale_out"]["rails"] = 1;
  CHECK(message_of(bad).empty());
  bad = good;
  bad["scale_out"]["kind"] = "dragonfly-plus";
  bad["scale_out"].erase("rails");
  CHECK(message_of(bad).empty());
  bad["scale_out"]["tiers"].elements().pop_back();
  CHECK_THAT(message_of(bad), Catch::Contains("scale_out.tiers") && Catch::Contains("three"));
  bad = good;
  bad["scale_out"]["tiers"][1]["radix"] = 1;
  CHECK_THAT(message_of(bad), Catch::Contains("tiers[1].radix"));
  bad = good;
  const SortedJson rate = {
      {"value", "0 B/s"}, {"evidence", "specified"}, {"source", "orrery-estimate"}};
  bad["scale_out"]["tiers"][0]["uplink_bandwidth"] = rate;
  CHECK_THAT(message_of(bad), Catch::Contains("tiers[0].uplink_bandwidth"));
  bad["scale_out"]["tiers"][0]["uplink_bandwidth"]["value"] = "800 Gbit/s";
  CHECK(message_of(bad).empty());
  bad["scale_out"]["tiers"][2]["uplink_bandwidth"] = rate;
  CHECK_THAT(message_of(bad), Catch::Contains("tiers[2].uplink_bandwidth"));
  bad = JsonValue::load(folder / "nvlink4-ndr-two-sites.json").raw();
  bad["sites"]["accelerators"] = 1000;
  CHECK_THAT(message_of(bad), Catch::Contains("sites.accelerators") && Catch::Contains("256"));
  bad["sites"]["accelerators"] = 1024;
  bad["sites"]["efficiency"]["value"] = 0;
  bad["sites"]["efficiency"]["low"] = 0;
  CHECK_THAT(message_of(bad), Catch::Contains("sites.efficiency"));
  bad = good;
  bad["scale_out"] = {{"kind", "none"}};
  CHECK(message_of(bad).empty());
  const Fabric alone = read_fabric(JsonValue::from(bad, "test.json"));
  CHECK(path_between(alone, 0, 7).tier == 0);
  CHECK_THROWS_AS(path_between(alone, 0, 8), Error);
  CHECK_THROWS_AS(nic_path(alone, 16), Error);
}

}  // namespace
}  // namespace orrery
