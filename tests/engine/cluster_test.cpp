// SPDX-License-Identifier: Apache-2.0
// Knows what clusters promise: all shipped ones load, name their parts, and refuse nonsense.
#include "sim/engine/cluster.h"
#include "sim/base/json/tree.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

namespace orrery {
namespace {

template <class Run>
std::string message_of(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST_CASE("every shipped cluster loads", "[cluster]") {
  const auto names = cluster_names();
  for (const char* needed :
       {"dgx-a100",        "dgx-h100",        "dgx-h200",         "dgx-b200",
        "dgx-b300",        "gb200-nvl72",     "gb300-nvl72",      "vr200-nvl72",
        "rubin-ultra",     "mi300x-8",        "mi355x-8",         "tpu-v5p",
        "tpu-v7",          "h100-efa",        "a100-4xhdr200",    "a100-omnipath",
        "a100-1600g-roce", "h100-spectrum-x", "h200-nvlink-host", "mi250x-frontier",
        "h800-multiplane", "gaudi2-8",        "gaudi3-8",         "trn2",
        "l40s-8",          "tpu-v4",          "tpu-v5e",          "tpu-v6e",
        "h100-pcie-8"})
    CHECK(std::find(names.begin(), names.end(), needed) != names.end());
  const auto sources = load_sources();
  for (const std::string& name : names) {
    INFO(name);
    const Cluster c = load_cluster(name, 8);
    CHECK(c.name == name);
    CHECK(c.gpus == 8);
    CHECK(c.device.resolved().memory_bandwidth.si() > 0);
    CHECK(c.fabric.scale_up.domain % std::min(c.gpus_per_host, c.fabric.scale_up.domain) == 0);
    CHECK(c.site.clock_factor.get() > 0.8);
    CHECK(c.site.clock_factor.get() <= 1);
    CHECK(c.site.clock_factor.low < c.site.clock_factor.high);
    const auto known = [&](const std::string& path, const auto& value) {
      INFO(path << " from " << value.source);
      CHECK((value.source.empty() || sources.count(value.source) == 1));
    };
    visit_fabric_values(c.fabric, known);
    visit_collective_values(c.collective_costs, known);
    visit_site_values(c.site, known);
  }
}

TEST_CASE("fabrics name parts that the catalogue has", "[cluster]") {
  for (const std::string& name : fabric_names()) {
    INFO(name);
    const Fabric f = load_fabric(name);
    if (f.scale_out.kind == ScaleOutKind::none) continue;
    CHECK(load_nic(f.scale_out.nic).name == f.scale_out.nic);
    for (const Tier& tier : f.scale_out.tiers)
      CHECK(load_switch(tier.switch_name).name == tier.switch_name);
  }
}

TEST_CASE("a cluster has any number of accelerators", "[cluster]") {
  CHECK(load_cluster("dgx-h100", 1).gpus == 1);
  CHECK(load_cluster("dgx-h100", 1048576).gpus == 1048576);
  CHECK(load_cluster("gb200-nvl72", 100).gpus == 100);
  CHECK_THAT(message_of([] { load_cluster("dgx-h100", 0); }), Catch::Contains("--gpus"));
  CHECK_THAT(message_of([] { load_cluster("h200-nvlink-host", 16); }),
             Catch::Contains("at most 8"));
}

TEST_CASE("overrides replace single values", "[cluster]") {
  auto file = SortedJson::parse(R"({
    "name": "test", "title": "Test", "accelerator": "h100-sxm", "fabric": "nvlink4-ndr",
    "host": "dgx-h100", "gpus_per_host": 8, "site": {}, "overrides": {}})");
  const Cluster base = load_cluster("dgx-h100", 8);
  file["site"] =
      load_catalog_entry("sim/engine/catalog/clusters", "cluster", "dgx-h100").raw().at("site");
  file["overrides"] = SortedJson::parse(R"({
    "accelerator": {"memory": {"bandwidth": {"value": "9 TB/s", "low": "8 TB/s", "high": "10 TB/s",
                                             "evidence": "assumed", "reason": "what if"}}},
    "fabric": {"scale_up": {"domain": 16}}})");
  const Cluster c = read_cluster(JsonValue::from(file, "test.json"), 16);
  CHECK(c.device.memory_bandwidth.get().si() == Approx(9e12));
  CHECK(c.device.memory_bandwidth.evidence == Evidence::assumed);
  CHECK(c.device.clock.get() == base.device.clock.get());
  CHECK(c.fabric.scale_up.domain == 16);
  CHECK(c.fabric.scale_up.bandwidth.get() == base.fabric.scale_up.bandwidth.get());

  auto bad = file;
  bad["overrides"]["fabric"]["scale_up"]["dommain"] = 8;
  CHECK_THAT(
      message_of([&] { read_cluster(JsonValue::from(bad, "test.json"), 8); }),
      Catch::Contains("dommain") && Catch::Contains("domain") && Catch::Contains("test.json"));
  bad = file;
  bad["overides"] = SortedJson::object();
  CHECK_THAT(message_of([&] { read_cluster(JsonValue::from(bad, "test.json"), 8); }),
             Catch::Contains("overides"));
}

TEST_CASE("an unknown cluster is an error that names the nearest", "[cluster]") {
  CHECK_THAT(message_of([] { load_cluster("dgx-h10", 8); }), Catch::Contains("dgx-h100"));
  CHECK_THAT(message_of([] { load_cluster("/no/such/file.json", 8); }),
             Catch::Contains("no such file"));
  CHECK_THROWS_AS(load_cluster("/", 8), Error);
}

}  // namespace
}  // namespace orrery
