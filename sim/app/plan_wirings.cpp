// Finds wirings that join more of a machine's accelerators than its own does.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/app/plan_terms.h"
#include "topologies/parts.h"

namespace orrery {
namespace {

// Whether the limits of the machine's size allow more accelerators than its wiring joins.
bool ends_by_wiring(const PlanChoice& choice) {
  const PlanGoal& goal = choice.goal;
  const Cluster& cluster = choice.question.cluster;
  const BillFacts& facts = choice.terms.facts;
  const BillQuestion question{.accelerators = cluster.gpus_per_host,
                              .ownership = choice.terms.ownership,
                              .facility = choice.terms.facility,
                              .contract = choice.terms.contract,
                              .ranges = false};
  std::vector<AffordableCount> counts;
  if (goal.power.si() > 0)
    counts.push_back(accelerators_for_power(cluster, facts, question, goal.power));
  if (goal.capital.si() > 0 && choice.terms.ownership == Ownership::buy)
    counts.push_back(accelerators_for_money(cluster, facts, question, goal.capital));
  if (goal.racks > 0)
    counts.push_back(accelerators_for_racks(cluster, facts, question, goal.racks));
  if (goal.square_metres > 0)
    counts.push_back(accelerators_for_floor(cluster, facts, question, goal.square_metres));
  return !counts.empty() && std::all_of(counts.begin(), counts.end(),
                                        [](const auto& count) { return count.fabric_limit; });
}

// Wirings that the catalogue's clusters have between as many of the same accelerators in a host and
// in a scale-up domain, and that do not end where this one does.
std::vector<std::string> larger_wirings(const Cluster& cluster) {
  std::vector<std::string> names;
  const std::int64_t joined = most_joined(cluster.fabric, plan_most_gpus);
  for (const std::string& name : cluster_names()) {
    const Cluster other = load_cluster(name, 1);
    const Fabric& fabric = other.fabric;
    if (other.device.name == cluster.device.name && other.gpus_per_host == cluster.gpus_per_host &&
        fabric.scale_up.domain == cluster.fabric.scale_up.domain &&
        std::find(names.begin(), names.end(), fabric.name) == names.end() &&
        most_joined(fabric, plan_most_gpus) > joined)
      names.push_back(fabric.name);
  }
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
  return fmt::format(
      "{} (wiring {}) joins at most {} accelerators, fewer than the limits allow: it was also "
      "looked at with {}, which the catalogue has for {} and which join{} more.",
      cluster.name, cluster.fabric.name, most_joined(cluster.fabric, plan_most_gpus),
      fmt::join(names, " and with "), cluster.device.name, names.size() == 1 ? "s" : "");
}

}  // namespace orrery
