// SPDX-License-Identifier: Apache-2.0
// Knows how long a collective's bytes take on a healthy, empty fabric that blocks or hashes.
#include "sim/engine/network/loaded_transfer.h"

#include <algorithm>
#include <cmath>

#include "sim/engine/flows/ground.h"
#include "topologies/routing/hashing.h"

namespace orrery {
namespace {

bool open(const Fabric& fabric) {
  const ScaleOut& out = fabric.scale_out;
  return out.routing != Routing::ecmp && out.kind != ScaleOutKind::dragonfly_plus &&
         fabric.sites.accelerators == 0 &&
         std::all_of(out.tiers.begin(), out.tiers.end(),
                     [](const Tier& t) { return t.oversubscription.get() <= 1; });
}

struct LinkLoad {
  double bytes = 0, flows = 0;  // on one link
};

std::vector<LinkLoad> loads_of(const FlowTable& table, const FlowRange& range, double bytes) {
  std::vector<LinkLoad> loads(table.links.size());
  for (FlowIndex f = range.first; f < range.last; ++f)
    for (const FlowUse& use : table.uses_of(table.flows[f])) {
      loads[use.link].bytes += use.weight * table.flows[f].bytes * bytes;
      loads[use.link].flows += use.weight;
    }
  return loads;
}

// Expected worst bytes on an uplink over the mean, when flows are hashed leaf by leaf.
double hashed_over_mean(double flows_per_link, const ClosShape& shape,
                        std::int64_t paths_per_flow) {
  const ClosTier& leaf = shape.tiers.front();
  const auto flows =
      std::max<std::int64_t>(1, std::llround(flows_per_link * static_cast<double>(leaf.up)));
  const std::int64_t leaves = std::max<std::int64_t>(1, leaf.groups * leaf.switches);
  return ecmp_worst_load(flows, leaf.up, paths_per_flow, leaves) / flows_per_link;
}

constexpr FlowOptions spread_flows{.folded = true, .spread_hashed = true};

// The worst of a collective's bytes on a link over what the link carries meanwhile, at least 1,
// where a busiest rank sends `rate` bytes a second. The bytes themselves are not asked for: equal
// rates give the same bits, whoever asks first (law 6).
double worst_link(const FlowGround& ground, const FlowRange& range, double rate,
                  const Fabric& fabric) {
  const auto loads = loads_of(ground.table(), range, rate);
  const bool hashed = fabric.scale_out.routing == Routing::ecmp;
  double factor = 1;
  LinkLoad trunk;  // the most loaded link between leaf and spine
  for (LinkIndex l = 0; l < loads.size(); ++l) {
    const double capacity = ground.table().links[l].capacity;
    if (ground.tier(l) < 1 || !(capacity > 0)) continue;
    factor = std::max(factor, loads[l].bytes / capacity);
    if (hashed && ground.tier(l) == 2 && loads[l].bytes > trunk.bytes) trunk = loads[l];
  }
  if (trunk.flows > 0) {
    const double nic = fabric.scale_out.nic_bandwidth.get().si() *
                       fabric.scale_out.efficiency.get() /
                       static_cast<double>(fabric.scale_out.planes);
    factor = std::max(
        factor, trunk.bytes / nic *
                    hashed_over_mean(trunk.flows, ground.shape(), fabric.scale_out.paths_per_flow));
  }
  return factor;
}

// How many times as long as alone a transfer takes.
double load_factor(const Collective& c, CollectiveAlgorithm algorithm, double rate,
                   const Fabric& fabric) {
  const GroupShape& group = c.group;
  const std::int64_t domain = fabric.scale_up.domain;
  const std::int64_t domains = group.domains * std::max<std::int64_t>(1, group.domain_step);
  if (nic_path(fabric, domains * domain).tier <= 1) return 1;
  const std::int64_t used = std::min(domain, group.per_domain * group.sharing);
  const JobGround job{.ranks = domains * used, .ranks_per_domain = used, .domain = domain};
  FlowGround ground(fabric, job, {}, spread_flows);
  const FlowRange range = ground.add(c, {.time = Seconds(1),
                                         .algorithm = algorithm,
                                         .scale_out_bytes = Bytes(rate),
                                         .transfer = Seconds(1)});
  return worst_link(ground, range, rate, fabric);
}

// False where nothing but the NICs can limit the collective.
bool may_load(const Collective& c, const CollectiveTime& alone, const Fabric& fabric) {
  return c.group.domains > 1 && alone.transfer > Seconds(0) && alone.scale_out_bytes > Bytes(0) &&
         !open(fabric);
}

double rate_of(const CollectiveTime& alone) {
  return (alone.scale_out_bytes / alone.transfer).si();
}

}  // namespace

Seconds loaded_transfer(const Collective& c, const CollectiveTime& alone, const Fabric& fabric) {
  if (!may_load(c, alone, fabric)) return alone.transfer;
  return alone.transfer * load_factor(c, alone.algorithm, rate_of(alone), fabric);
}

Seconds loaded_transfer(const Collective& c, const CollectiveTime& alone, const Fabric& fabric,
                        const JobGround& job) {
  const Seconds side_by_side = loaded_transfer(c, alone, fabric);
  if (!job.scattered()) return side_by_side;
  LaidFlows laid = ScatteredTransfers::lay(fabric, job);
  return std::max(side_by_side, ScatteredTransfers(laid).of(c, alone, fabric));
}

Seconds LoadedTransfers::of(const Collective& c, const CollectiveTime& alone,
                            const Fabric& fabric) {
  if (!may_load(c, alone, fabric)) return alone.transfer;
  const LoadKey key{
      .kind = c.kind, .algorithm = alone.algorithm, .group = c.group, .rate = rate_of(alone)};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, factor] : known_)
      if (known == key) return alone.transfer * factor;
  }
  const double factor = load_factor(c, key.algorithm, key.rate, fabric);
  const std::lock_guard lock(mutex_);
  known_.emplace_back(key, factor);
  return alone.transfer * factor;
}

LaidFlows ScatteredTransfers::lay(const Fabric& fabric, const JobGround& job) {
  return {fabric, job, {}, spread_flows};
}

Seconds ScatteredTransfers::of(const Collective& c, const CollectiveTime& alone,
                               const Fabric& fabric) {
  if (!may_load(c, alone, fabric)) return alone.transfer;
  const LoadKey key{
      .kind = c.kind, .algorithm = alone.algorithm, .group = c.group, .rate = rate_of(alone)};
  for (const auto& [known, factor] : known_)
    if (known == key) return alone.transfer * factor;
  const LaidFlows::Laid& laid = laid_.of(c, alone);
  const double factor = worst_link(laid.ground, laid.range, key.rate, fabric);
  known_.emplace_back(key, factor);
  return alone.transfer * factor;
}

}  // namespace orrery
