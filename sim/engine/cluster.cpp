// SPDX-License-Identifier: Apache-2.0
// Knows how a cluster's file joins an accelerator, a wiring and a host.
#include "sim/engine/cluster.h"

#include <fmt/format.h>

#include <array>

#include "hw_models/price/economics.h"
#include "sim/base/json/tree.h"

namespace orrery {
namespace {

constexpr const char* cluster_folder = "sim/engine/catalog/clusters";
constexpr const char* fabric_folder = "topologies/catalog";

// The entry of another catalogue with this cluster's overrides over it.
JsonValue overridden(JsonValue entry, const std::optional<JsonValue>& overrides,
                     std::string_view part) {
  if (!overrides) return entry;
  const auto patch = overrides->find(part);
  if (!patch) return entry;
  if (!patch->is_object()) patch->fail("an object of values to replace");
  SortedJson merged = entry.raw();
  merge_overlay(merged, patch->raw());
  return JsonValue::from(std::move(merged), fmt::format("{} with overrides.{} of {}", entry.file(),
                                                        part, overrides->file()));
}

// Keys of an accelerator that no answer depends on: an override of one is a mistake.
struct Idle {
  const char* path;
  const char* instead;
};
constexpr std::array idle_keys = {
    Idle{"scale_up.bandwidth",
         "overrides.fabric.scale_up.bandwidth: the wiring says how fast "
         "accelerators of a domain are joined"},
    Idle{"compute.clock",
         "the rates that go with it (compute.tensor, compute.vector_fp32), or "
         "site.clock_factor"},
    Idle{"compute.tensor.fp64", "rates of bf16, fp16, fp8, fp6 or fp4: no recipe computes in fp64"},
    Idle{"compute.tensor.tf32", "rates of bf16, fp16, fp8, fp6 or fp4: no recipe computes in tf32"},
    Idle{"compute.tensor.int8", "rates of bf16, fp16, fp8, fp6 or fp4: no recipe computes in int8"},
};

void check_overrides(const JsonValue& overrides) {
  overrides.expect_only({"accelerator", "fabric", "host"});
  const auto accelerator = overrides.find("accelerator");
  if (!accelerator) return;
  for (const Idle& idle : idle_keys) {
    std::optional<JsonValue> at = accelerator;
    const std::string_view path = idle.path;
    for (std::size_t start = 0; at && start <= path.size();) {
      const std::size_t dot = std::min(path.find('.', start), path.size());
      at = at->is_object() ? at->find(path.substr(start, dot - start)) : std::nullopt;
      start = dot + 1;
    }
    if (at) at->fail(idle.instead, "a key that changes nothing");
  }
}

Site read_cluster_site(const JsonValue& at) {
  at.expect_only({"clock_factor", "power_usage_effectiveness", "electricity_per_watt"});
  Site site;
  site.clock_factor = read_sourced<double>(at.at("clock_factor"));
  site.power_usage_effectiveness = read_sourced<double>(at.at("power_usage_effectiveness"));
  site.electricity_per_watt = read_sourced<DollarsPerSecond>(at.at("electricity_per_watt"));
  if (!site.clock_factor.known() || !(site.clock_factor.get() > 0))
    at.at("clock_factor").fail("a ratio above 0");
  if (site.power_usage_effectiveness.known() && !(site.power_usage_effectiveness.get() >= 1))
    at.at("power_usage_effectiveness").fail("a ratio of at least 1");
  return site;
}

void check_count(const Cluster& cluster, std::int64_t gpus) {
  if (gpus < 1 || gpus > (INT64_C(1) << 40))
    throw Error({.file = "--gpus",
                 .found = fmt::format("{}", gpus),
                 .expected = "a whole number from 1 to 2^40"});
  const std::int64_t domain = cluster.fabric.scale_up.domain;
  if (cluster.fabric.scale_out.kind == ScaleOutKind::none && gpus > domain)
    throw Error(
        {.file = "--gpus",
         .found = fmt::format("{}", gpus),
         .expected = fmt::format("at most {}: {} has no scale-out network", domain, cluster.name)});
}

}  // namespace

Cluster::Cluster() = default;
Cluster::Cluster(const Cluster&) = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(const Cluster&) = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;
Cluster::~Cluster() = default;

Cluster read_cluster(const JsonValue& file, std::int64_t gpus) {
  file.expect_only({"name", "title", "aliases", "based_on", "accelerator", "fabric", "host",
                    "gpus_per_host", "site", "overrides"});
  const auto overrides = file.find("overrides");
  if (overrides) check_overrides(*overrides);
  Cluster cluster;
  cluster.name = file.at("name").text();
  cluster.title = file.at("title").text();
  cluster.device =
      read_device(overridden(load_catalog_entry("hw_models/catalog/accelerators", "accelerator",
                                                file.at("accelerator").reference()),
                             overrides, "accelerator"));
  cluster.calibration =
      load_calibration(file.at("accelerator").reference(), cluster.device, Kernels::any);
  cluster.collective_costs = load_collective_costs(cluster.device);
  cluster.fabric = read_fabric(
      overridden(load_catalog_entry(fabric_folder, "fabric", file.at("fabric").reference()),
                 overrides, "fabric"));
  cluster.host = read_host(
      overridden(load_catalog_entry("hw_models/catalog/hosts", "host", file.at("host").reference()),
                 overrides, "host"));
  cluster.gpus_per_host = file.at("gpus_per_host").integer(1, 1 << 20);
  cluster.site = read_cluster_site(file.at("site"));
  cluster.gpus = gpus;
  cluster.host_load = load_economics(usual_economics).host_load;
  check_count(cluster, gpus);
  return cluster;
}

Cluster with_count(Cluster cluster, std::int64_t gpus) {
  check_count(cluster, gpus);
  cluster.gpus = gpus;
  return cluster;
}

Cluster load_cluster(const std::string& name, std::int64_t gpus) {
  return read_cluster(load_catalog_entry(cluster_folder, "cluster", name), gpus);
}

std::vector<std::string> cluster_names() { return catalog_names(cluster_folder); }

Fabric load_fabric(const std::string& name) {
  return read_fabric(load_catalog_entry(fabric_folder, "fabric", name));
}

std::vector<std::string> fabric_names() { return catalog_names(fabric_folder); }

}  // namespace orrery
