// SPDX-License-Identifier: Apache-2.0
// Reads the machines of question files: clusters with overrides, and keys that change them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hw_models/catalog.h"
#include "sim/outcome/host_power.h"
#include "sim/question/plan/question.h"
#include "sim/question/plan/terms.h"
#include "sim/question/settings/what_if.h"

namespace orrery {
namespace {

constexpr const char* cluster_folder = "sim/engine/catalog/clusters";
constexpr std::int64_t most_planes = 64;

// In overrides a plain value stands for one that the question takes for granted.
void dress_values(const SortedJson& target, SortedJson& patch) {
  for (auto& [key, value] : patch.items()) {
    if (!target.is_object() || !target.contains(key)) continue;
    const SortedJson& old = target.at(key);
    if (value.is_object()) {
      dress_values(old, value);
    } else if (old.is_object() && old.contains("evidence")) {
      value = {{"value", value},
               {"low", value},
               {"high", value},
               {"evidence", "assumed"},
               {"source", "orrery-estimate"},
               {"reason", "the question says so"}};
    }
  }
}

void dress_overrides(SortedJson& merged, const JsonValue& at) {
  if (!merged.contains("overrides") || !merged["overrides"].is_object()) return;
  const auto dress = [&](const char* part, const char* folder, const char* key) {
    SortedJson& overrides = merged["overrides"];
    if (!overrides.contains(part) || !overrides[part].is_object()) return;
    if (!merged.contains(key) || !merged[key].is_string()) at.fail("a cluster");
    dress_values(load_catalog_entry(folder, part, merged[key].get<std::string>()).raw(),
                 overrides[part]);
  };
  dress("accelerator", "hw_models/catalog/accelerators", "accelerator");
  dress("fabric", "topologies/catalog", "fabric");
  dress("host", "hw_models/catalog/hosts", "host");
}

// What only a plan changes: the size of a domain and its kernels, beside the machine's rates.
WhatIf read_edit(const JsonValue& at, const Cluster& cluster) {
  WhatIf edit = read_what_if(at, cluster);
  if (const auto v = at.find("scale_up_domain"))
    edit.scale_up_domain = static_cast<double>(v->integer(1, 1 << 20)) /
                           static_cast<double>(cluster.fabric.scale_up.domain);
  if (const auto v = at.find("speedup"); v && v->text() != "none")
    under_key(at, "speedup", [&] { edit.kernels = kernel_speedups_from(v->text()); });
  return edit;
}

// Ports split by lanes, which come in powers of two; the slowest that clusters' networks have are
// those of 25 Gbit/s (IEEE 802.3by).
void check_lanes(const JsonValue& at, std::int64_t planes, const ScaleOut& out) {
  constexpr double slowest_lane = 25e9 / 8;  // B/s
  const auto power_of_two = [](std::int64_t n) { return (n & (n - 1)) == 0; };
  const std::int64_t more = std::max(planes, out.planes), fewer = std::min(planes, out.planes);
  const double rate = out.nic_bandwidth.get().si();
  if (more % fewer == 0 && power_of_two(more / fewer) &&
      rate >= slowest_lane * static_cast<double>(planes))
    return;
  std::int64_t least = out.planes;
  while (least % 2 == 0) least /= 2;
  std::string possible;
  for (std::int64_t n = least; n <= most_planes && rate >= slowest_lane * static_cast<double>(n);
       n *= 2)
    possible += fmt::format("{}{}", possible.empty() ? "" : ", ", n);
  at.fail(
      fmt::format("one of {}: ports of {:.0f} Gbit/s split by lanes", possible, rate * 8 / 1e9));
}

// A NIC in other parts: the switches' ports split or join with it, so that a switch has more or
// fewer of them, and each tier reaches that much farther.
void split_nics(const JsonValue& at, ScaleOut& out) {
  const std::int64_t planes = at.integer(1, most_planes), before = out.planes;
  if (planes == before) return;
  check_lanes(at, planes, out);
  std::int64_t more = 1, fewer = 1;
  for (Tier& tier : out.tiers) {
    more *= planes;
    fewer *= before;
    if (tier.radix * planes % before != 0 || tier.reach * more % fewer != 0 ||
        (tier.radix != 0 && tier.radix * planes / before < 2))
      at.fail(fmt::format("planes into which switches of {} ports can be split (now {})",
                          tier.radix, before));
    tier.radix = tier.radix * planes / before;
    tier.reach = tier.reach * more / fewer;
  }
  out.planes = planes;
}

void change_network(const JsonValue& at, Cluster& cluster) {
  ScaleOut& out = cluster.fabric.scale_out;
  for (const char* key : {"oversubscription", "routing", "rails", "planes", "nic_bandwidth"})
    if (const auto v = at.find(key); v && out.tiers.empty())
      v->fail("nothing: " + cluster.name + " has no switches");
  if (const auto v = at.find("oversubscription")) {
    const double ratio = v->number();
    if (!(ratio >= 1) || ratio > 1000) v->fail("a ratio from 1 (non-blocking) to 1000");
    out.tiers.front().oversubscription = granted(ratio);
  }
  if (const auto v = at.find("routing")) {
    out.routing = routing_text.from(*v);
    if (out.routing != Routing::ecmp) out.paths_per_flow = 1;
  }
  if (const auto v = at.find("rails")) {
    const bool railed =
        out.kind == ScaleOutKind::rail_optimised || out.kind == ScaleOutKind::rail_only;
    const std::int64_t rails = v->integer(1, 4096);
    if (!railed && rails != 1)
      v->fail(fmt::format("1: {} is a {}, which has no rails", cluster.name, to_text(out.kind)));
    out.rails = rails;
  }
  if (const auto v = at.find("planes")) split_nics(*v, out);
  const std::int64_t site = cluster.fabric.sites.accelerators;
  if (site != 0 && !out.tiers.empty() && out.tiers.front().reach != 0 &&
      site % out.tiers.front().reach != 0)
    at.at("planes").fail(fmt::format("whole groups of leaf switches in a site of {}", site));
}

}  // namespace

std::string PlanReading::base_name(const SortedJson& value) const {
  const JsonValue at = JsonValue::from({{"cluster", value}}, file.file()).at("cluster");
  return at.is_object() ? at.at("based_on").text() : at.text();
}

void PlanReading::add_cluster(const SortedJson& value) {
  const std::string key = value.dump();
  if (cluster_files.contains(key)) return;
  const JsonValue at = JsonValue::from({{"cluster", value}}, file.file()).at("cluster");
  JsonValue entry = load_catalog_entry(cluster_folder, "cluster", base_name(value));
  if (at.is_object()) {
    SortedJson merged = entry.raw();
    SortedJson patch = value;
    patch.erase("based_on");
    static_cast<void>(at.at("name").text());
    merge_overlay(merged, patch);
    if (!patch.contains("title")) merged["title"] = at.at("name").text();
    dress_overrides(merged, at);
    entry = JsonValue::from(std::move(merged), file.file() + ": cluster " + at.at("name").text());
  }
  const std::string name = entry.at("name").text();
  for (const auto& [other_key, other] : cluster_files)
    if (other.at("name").text() == name)
      throw Error(
          {.file = file.file(),
           .path = "cluster",
           .found = fmt::format("two different machines named {}", name),
           .expected = "a name of its own for each, such as \"name\": \"" + name + "-changed\""});
  cluster_files.emplace(key, std::move(entry));
}

Cluster read_plan_cluster(const JsonValue& at, const JsonValue& cluster_file, std::int64_t gpus) {
  const auto fabric = at.find("fabric");
  if (!fabric) return read_cluster(cluster_file, gpus);
  SortedJson merged = cluster_file.raw();
  merged["fabric"] = fabric->text();
  return read_cluster(JsonValue::from(std::move(merged), cluster_file.file()), gpus);
}

void change_machine(const JsonValue& at, PlanChoice& choice) {
  Cluster& cluster = choice.question.cluster;
  choice.edit = read_edit(at, cluster);
  under_key(at, choice.edit.power_limit ? "power_cap" : "cluster",
            [&] { cluster = with(cluster, choice.edit); });
  change_network(at, cluster);
}

std::vector<std::string> premises_of(const Plan& plan) {
  std::vector<std::string> texts;
  for (const PlanChoice& choice : plan.choices) {
    WhatIf edit = choice.edit;
    edit.memory_capacity = 1;  // its premise is of a layout that is kept: here it is searched anew
    for (std::string& text : premises(edit))
      if (std::find(texts.begin(), texts.end(), text) == texts.end())
        texts.push_back(std::move(text));
  }
  const bool machine = std::any_of(plan.choices.begin(), plan.choices.end(), [](const auto& c) {
    WhatIf edit = c.edit;
    edit.kernels.clear();
    edit.power_limit.reset();
    return !(edit == WhatIf{});
  });
  if (machine) texts.emplace_back("Hypothetical parts cost and fail as those that they replace.");
  const auto any = [&](auto&& holds) {
    return std::any_of(plan.choices.begin(), plan.choices.end(), holds);
  };
  if (any([](const PlanChoice& c) {
        return c.goal.capital.si() > 0 && c.terms.ownership == Ownership::rent;
      }))
    texts.emplace_back(
        "The limit on capital holds for machines that are bought: for rented ones nothing is.");
  if (counts_energy(plan.choices.front().goal.objective))
    for (const PlanChoice& choice : plan.choices)
      if (const Cluster& cluster = choice.question.cluster; !host_power_known(cluster)) {
        std::string text = fmt::format("{}: host power not known: not counted.", cluster.name);
        if (std::find(texts.begin(), texts.end(), text) == texts.end())
          texts.push_back(std::move(text));
      }
  return texts;
}

}  // namespace orrery
