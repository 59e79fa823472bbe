// SPDX-License-Identifier: Apache-2.0
// Finds wirings that join more of a machine's accelerators than its own does.
#include <fmt/format.h>

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/base/text/words.h"
#include "sim/plan/point.h"
#include "sim/question/plan/terms.h"
#include "topologies/parts.h"

namespace orrery {
namespace {

// Whether the limits of the machine's size allow more accelerators than its wiring joins.
bool ends_by_wiring(const PlanChoice& choice) {
  const std::vector<SizeLimit> limits = size_limits(choice);
  return !limits.empty() && std::all_of(limits.begin(), limits.end(), [](const SizeLimit& size) {
    return size.most.fabric_limit;
  });
}

// Wirings that the catalogue's clusters have between as many of the same accelerators in a host and
// in a scale-up domain, and that do not end where this one does, the largest first.
std::vector<std::string> larger_wirings(const Cluster& cluster) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  const std::int64_t joined = most_joined(cluster.fabric, plan_most_gpus);
  for (const std::string& name : cluster_names()) {
    const Cluster other = load_cluster(name, 1);
    const Fabric& fabric = other.fabric;
    if (other.device.name != cluster.device.name || other.gpus_per_host != cluster.gpus_per_host ||
        fabric.scale_up.domain != cluster.fabric.scale_up.domain)
      continue;
    const std::pair entry(-most_joined(fabric, plan_most_gpus), fabric.name);
    if (-entry.first > joined && std::find(found.begin(), found.end(), entry) == found.end())
      found.push_back(entry);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (const auto& [most, name] : found) names.push_back(name);
  return names;
}

}  // namespace

std::vector<std::string> wirings_beyond(const PlanChoice& choice) {
  if (!choice.any_count) return {};
  try {
    if (ends_by_wiring(choice)) return larger_wirings(choice.question.cluster);
  } catch (const Error&) {  // of a bill with unknown parts: the search says so
  }
  return {};
}

std::string wirings_text(const Cluster& cluster, const std::vector<std::string>& names) {
  const std::size_t looked = std::min(names.size(), most_wirings);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(looked);
  std::string text = fmt::format(
      "{} (wiring {}) joins at most {} accelerators, fewer than the limits allow: wirings of the "
      "catalogue that join more of {} were looked at too: {}.",
      cluster.name, cluster.fabric.name, most_joined(cluster.fabric, plan_most_gpus),
      cluster.device.name, joined(std::span(names.begin(), end), ", "));
  if (end != names.end())
    text += fmt::format(" So do {} (`fabric` asks for them).",
                        joined(std::span(end, names.end()), ", "));
  return text;
}

}  // namespace orrery
