// SPDX-License-Identifier: Apache-2.0
// Reads what is hypothetical about a machine.
#include "sim/question/settings/what_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text/words.h"
#include "sim/engine/cluster.h"

namespace orrery {
namespace {

constexpr double most_of_a_factor = 1e6;

// A factor, or a value of its own unit over what there is.
template <class Q>
double factor_of(const JsonValue& at, const Sourced<Q>& today, const char* example) {
  const std::string expected =
      fmt::format("a value above 0 such as {}, or a factor (1: as it is)", example);
  double factor = 0;
  if (at.is_number()) {
    factor = at.number();
  } else {
    if (!today.known() || !(today.get().si() > 0))
      at.fail("a factor: the catalogue has no value of today");
    factor = at.quantity<Q>().si() / today.get().si();
  }
  if (!(factor > 0) || factor > most_of_a_factor) at.fail(expected);
  return factor;
}

// "memory bandwidth x 1.5"; a power limit as it was asked for.
std::string change_text(const std::string& key, const JsonValue& value, const WhatIf& edit) {
  std::string words = key;
  std::replace(words.begin(), words.end(), '_', ' ');
  if (key == "power_cap") return words + " " + value.text();
  const double factor = key == "nic_bandwidth"        ? edit.network_bandwidth
                        : key == "scale_up_bandwidth" ? edit.scale_up_bandwidth
                        : key == "memory_capacity"    ? edit.memory_capacity
                        : key == "memory_bandwidth"   ? edit.memory_bandwidth
                                                      : edit.tensor_rate;
  return fmt::format("{} x {:.4g}", words, factor);
}

}  // namespace

const std::vector<WhatIfKey>& what_if_keys() {
  static const std::vector<WhatIfKey> keys = {
      {"nic_bandwidth", "of a NIC: \"800 Gbit/s\", or a factor"},
      {"scale_up_bandwidth", "of one accelerator: \"1.8 TB/s\", or a factor"},
      {"memory_capacity", "of one accelerator: \"288 GB\", or a factor"},
      {"memory_bandwidth", "of one accelerator: \"8 TB/s\", or a factor"},
      {"tensor_rate", "dense BF16 peak: \"2.5 PFLOP/s\", or a factor of all formats"},
      {"power_cap", "of one accelerator: \"700 W\", or none"},
  };
  return keys;
}

WhatIf read_what_if(const JsonValue& at, const Cluster& cluster) {
  WhatIf edit;
  const Device& device = cluster.device;
  const auto factor = [&](const char* key, const auto& today, const char* example, double& value) {
    if (const auto v = at.find(key)) value = factor_of(*v, today, example);
  };
  factor("nic_bandwidth", cluster.fabric.scale_out.nic_bandwidth, "\"800 Gbit/s\"",
         edit.network_bandwidth);
  factor("scale_up_bandwidth", cluster.fabric.scale_up.bandwidth, "\"900 GB/s\"",
         edit.scale_up_bandwidth);
  factor("memory_capacity", device.memory_capacity, "\"288 GB\"", edit.memory_capacity);
  factor("memory_bandwidth", device.memory_bandwidth, "\"8 TB/s\"", edit.memory_bandwidth);
  factor("tensor_rate", device.tensor_rate[static_cast<std::size_t>(Format::bf16)],
         "\"2.5 PFLOP/s\"", edit.tensor_rate);
  if (const auto v = at.find("power_cap"))
    if (!v->is_string() || v->text() != "none") edit.power_limit = v->quantity<Watts>();
  return edit;
}

Cluster with_what_if(Cluster cluster, const JsonValue& at) {
  const WhatIf edit = read_what_if(at, cluster);
  if (edit == WhatIf{}) return cluster;
  std::vector<std::string> changed;
  for (const WhatIfKey& key : what_if_keys())
    if (const auto v = at.find(key.key)) changed.push_back(change_text(key.key, *v, edit));
  if (at.has("nic_bandwidth") && cluster.fabric.scale_out.tiers.empty())
    at.at("nic_bandwidth").fail("nothing: " + cluster.name + " has no switches");
  under_key(at, edit.power_limit ? "power_cap" : "cluster",
            [&] { cluster = with(std::move(cluster), edit); });
  cluster.changes = premises(edit);
  cluster.changes.insert(
      cluster.changes.begin(),
      fmt::format("The machine is hypothetical: {} with {}.", cluster.name, enumeration(changed)));
  return cluster;
}

}  // namespace orrery
