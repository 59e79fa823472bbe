// SPDX-License-Identifier: Apache-2.0
// Sums the flows of a step by the highest switch that they pass.
#include "sim/engine/prices/trunk_traffic.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/engine/step/step.h"
#include "topologies/clos.h"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 3> tier_names = {"leaf group", "pod", "core group"};
constexpr std::size_t layer_above_leaf = 2;  // of FlowPrice::bytes: what passes spines

double taper_of(const ScaleOut& out, std::size_t tier) {
  double taper = 1;
  for (std::size_t t = 0; t <= tier && t < out.tiers.size(); ++t)
    taper *= out.tiers[t].oversubscription.value.value_or(1);
  return taper;
}

// Flows of leaf switches that have links enough are hashed onto them, and meet by chance.
bool meets_by_hash(const ScaleOut& out, std::size_t tier) {
  return tier == 0 && out.routing == Routing::ecmp && taper_of(out, tier) <= 1;
}

// What the links above a group of this tier carry for one of its hosts; 0: enough for all.
double links_of_host(const Cluster& cluster, std::size_t tier) {
  const ScaleOut& out = cluster.fabric.scale_out;
  const double taper = taper_of(out, tier);
  if (taper <= 1 && !meets_by_hash(out, tier)) return 0;
  return out.nic_bandwidth.get().si() * out.nics_per_accelerator.get() *
         static_cast<double>(cluster.gpus_per_host) / taper;
}

double seconds_of(Ticks t) { return to_seconds(t).si(); }

// Share of the time of a kind of traffic that shows in the step.
double waited_share(const StepResult& result, Label label) {
  const StageBreakdown& stage =
      result.stages[static_cast<std::size_t>(pacing_stage(result.stages))];
  double sent = 0;
  for (const NetworkUse& use : result.network)
    if (use.label == label) sent += use.count * use.price.time.time.si();
  return sent > 0 ? std::clamp(seconds_of(stage[label]) / sent, 0.0, 1.0) : 0;
}

TrunkTraffic traffic_above(const StepResult& result, std::size_t tier, double hosts,
                           double links_of_one) {
  TrunkTraffic out;
  const double step = seconds_of(result.step);
  double sent = 0;  // time in which something passes, waited for
  for (const NetworkUse& use : result.network) {
    double bytes = 0;
    for (std::size_t layer = layer_above_leaf + tier; layer < use.price.bytes.size(); ++layer)
      bytes += use.price.bytes[layer];
    const double time = use.price.time.transfer.si();
    if (!(bytes > 0) || !(time > 0)) continue;
    const double load = bytes / time / hosts / links_of_one;
    const double waited = waited_share(result, use.label);
    sent += use.count * time * waited;
    out.load += load * use.count * time * waited;
    out.hidden += load * use.count * time * (1 - waited) / step;
  }
  out.load = sent > 0 ? out.load / sent : 0;
  out.busy = std::min(1.0, sent / step);
  return out;
}

void add_hashing(const Cluster& cluster, TrunkTraffic& out) {
  const ClosTier leaf = clos_shape(cluster.fabric, cluster.gpus).tiers.front();
  out.uplinks = static_cast<std::int32_t>(leaf.up);
  out.switches = static_cast<std::int32_t>(
      leaf.switches * std::max<std::int64_t>(1, cluster.fabric.scale_out.planes));
  out.paths = static_cast<std::int32_t>(cluster.fabric.scale_out.paths_per_flow);
  if (out.uplinks == 0) out = {};
}

}  // namespace

std::vector<TrunkTraffic> trunk_traffic(PlaceSteps& steps, const ScatteredRanks& ranks,
                                        const SlotShape& shape) {
  const Scenario& scenario = steps.scenario();
  std::vector<TrunkTraffic> out(shape.levels.size());
  const std::int64_t gpus = scenario.layout.gpus();
  std::optional<StepResult> result;
  for (std::size_t level = 0; level < shape.levels.size(); ++level) {
    const auto name = std::find(tier_names.begin(), tier_names.end(), shape.levels[level].name);
    if (name == tier_names.end()) continue;
    const auto tier = static_cast<std::size_t>(name - tier_names.begin());
    const double links = links_of_host(scenario.cluster, tier);
    if (!(links > 0)) continue;
    if (!result) result = steps.step_at(ranks, NetworkMode::flow);
    const double hosts =
        static_cast<double>(gpus) / static_cast<double>(scenario.cluster.gpus_per_host);
    out[level] = traffic_above(*result, tier, hosts, links);
    if (meets_by_hash(scenario.cluster.fabric.scale_out, tier))
      add_hashing(scenario.cluster, out[level]);
  }
  const bool meets = std::any_of(out.begin(), out.end(),
                                 [](const TrunkTraffic& t) { return t.load > 0 || t.hidden > 0; });
  return meets ? out : std::vector<TrunkTraffic>{};
}

}  // namespace orrery
