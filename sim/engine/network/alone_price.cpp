// SPDX-License-Identifier: Apache-2.0
// Runs a collective's flows, and says when they end for each stage and what they carry.
#include "sim/engine/network/alone_price.h"

#include <algorithm>
#include <span>
#include <utility>

#include "sim/engine/flows/last_end.h"
#include "sim/engine/flows/limiting_links.h"
#include "sim/engine/flows/short_job.h"
#include "sim/engine/network/flow_classes.h"
#include "sim/engine/network/loaded_transfer.h"

namespace orrery {
namespace {

// Bytes by the highest layer that each flow passes.
void add_layers(const FlowGround& ground, const FlowRange& range, double bytes, FlowPrice& price) {
  const FlowTable& table = ground.table();
  for (FlowIndex f = range.first; f < range.last; ++f) {
    const FlowEntry& flow = table.flows[f];
    int layer = 0;
    for (const FlowUse& use : table.uses_of(flow)) {
      layer = std::max(layer, ground.tier(use.link));
      if (ground.tier(use.link) == 0 && range.crosses)
        price.bytes[0] += flow.bytes * bytes * flow.count * use.weight;
    }
    price.bytes[static_cast<std::size_t>(layer)] += flow.bytes * bytes * flow.count;
  }
}

// Stages wait for their own flows: those that start in their domains. A domain that several stages
// share belongs to each of them.
void add_stages(const FlowGround& ground, const Folded& folded, const FlowRange& range,
                const std::vector<Ticks>& ends, const CollectiveTime& alone, FlowPrice& price) {
  const JobGround& job = ground.job();
  std::vector<Ticks> last(static_cast<std::size_t>(job.stages));
  const auto stage_of = [&](std::int64_t rank) {
    return std::min(rank, job.ranks - 1) * job.stages / job.ranks;
  };
  for (FlowIndex f = range.first; f < range.last; ++f) {
    const std::int64_t first = ground.home(f) * job.ranks_per_domain;
    for (std::int64_t s = stage_of(first); s <= stage_of(first + job.ranks_per_domain - 1); ++s) {
      Ticks& end = last[static_cast<std::size_t>(s)];
      end = max(end, ends[folded.flow_class[f]]);
    }
  }
  for (const Ticks end : last) {
    price.by_stage.push_back(price.time);
    if (end == Ticks{}) continue;  // none starts here, as with sends of the last stage
    price.by_stage.back().transfer = to_seconds(end);
    price.by_stage.back().time = to_seconds(flow_latency(alone) + end);
  }
}

void find_busiest(const FlowGround& ground, const Folded& folded, const FlowRange& range,
                  double bytes, double seconds, FlowPrice& price) {
  if (!(seconds > 0)) return;
  std::vector<double> carried(folded.table.links.size(), 0);
  for (const FlowIndex f : one_of_each(folded, range)) {
    const FlowEntry& flow = folded.table.flows[folded.flow_class[f]];
    for (const FlowUse& use : folded.table.uses_of(flow))
      carried[use.link] += use.weight * ground.table().flows[f].bytes * bytes;
  }
  std::vector<LinkIndex> example(carried.size(), 0);
  for (LinkIndex l = static_cast<LinkIndex>(folded.link_class.size()); l-- > 0;)
    example[folded.link_class[l]] = l;
  std::vector<LinkIndex> order;
  for (LinkIndex c = 0; c < carried.size(); ++c)
    if (carried[c] > 0 && ground.tier(example[c]) > 0) order.push_back(c);
  const auto load = [&](LinkIndex c) {
    const double capacity = folded.table.links[c].capacity;
    return capacity > 0 ? carried[c] / capacity / seconds : 0;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](LinkIndex a, LinkIndex b) { return load(a) > load(b); });
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i)
    price.busiest.push_back({.name = ground.describe(example[order[i]]),
                             .load = load(order[i]),
                             .links = folded.table.links[order[i]].count});
}

std::optional<ShortJob> short_job(const Collective& collective, const CollectiveTime& alone,
                                  const Fabric& fabric, const JobGround& job,
                                  const Conditions& conditions, const FlowOptions& options) {
  const bool hashed = fabric.scale_out.routing == Routing::ecmp && !options.spread_hashed;
  if (!options.folded || !conditions.healthy_network() || hashed) return std::nullopt;
  return shorten(collective, alone.algorithm, clos_shape(fabric, job.domains() * job.domain), job);
}

// When each class of a collective's flows ends, and the greatest rate that it has.
FlowEnds run_flows(const FlowGround& ground, const Folded& folded, const FlowRange& range,
                   double bytes) {
  FlowClock clock(folded.table);
  start_background(folded.table, clock, {});
  for (const FlowIndex f : one_of_each(folded, range))
    clock.start(folded.flow_class[f], ground.table().flows[f].bytes * bytes, {});
  FlowEnds all{.ends = std::vector<Ticks>(folded.table.flows.size()), .rates = {}};
  while (const auto ended = clock.next()) all.ends[ended->flow] = ended->time;
  for (FlowIndex c = 0; c < folded.table.flows.size(); ++c) all.rates.push_back(clock.most_rate(c));
  return all;
}

void set_transfer(Ticks end, const CollectiveTime& alone, FlowPrice& price) {
  price.time.transfer = to_seconds(end);
  price.time.time = to_seconds(flow_latency(alone) + end);
}

// Messages between stages are each stage's own, on a healthy network too: hashing favours some.
bool stages_differ(const Collective& collective, bool is_short, const JobGround& job,
                   const Conditions& conditions) {
  const bool between_stages = collective.kind == CollectiveKind::send_receive && !is_short;
  return (!conditions.healthy_network() || between_stages) && job.stages > 1;
}

// The same, at once where they end as one filling says.
FlowEnds run_classes(const FlowGround& ground, const Folded& folded, const FlowRange& range,
                     double bytes) {
  if (range.last - range.first == ground.table().flows.size())
    if (FlowEnds all = ends_together(folded.table, bytes); !all.ends.empty()) return all;
  return run_flows(ground, folded, range, bytes);
}

// The same, with links that never fill left out.
std::pair<Folded, std::vector<Ticks>> fold_and_run(const FlowGround& ground, const FlowRange& range,
                                                   double bytes) {
  const FlowTable& table = ground.table();
  LimitingLinks limiting;
  while (true) {
    Folded folded = classes_of(ground, limiting.of(table));
    FlowEnds all = run_classes(ground, folded, range, bytes);
    if (!limiting.missed(table, folded.of_flows(all.rates))) return {std::move(folded), all.ends};
  }
}

// A collective's flows alone.
void run_alone(const FlowGround& ground, const FlowRange& range, double bytes,
               const CollectiveTime& alone, const Collective& collective,
               const Conditions& conditions, FlowPrice& price) {
  const bool by_stage = stages_differ(collective, false, ground.job(), conditions);
  if (!by_stage && conditions.background.empty())
    if (const auto end = last_end(ground.table(), bytes)) return set_transfer(*end, alone, price);
  const auto [folded, ends] = fold_and_run(ground, range, bytes);
  set_transfer(*std::max_element(ends.begin(), ends.end()), alone, price);
  if (by_stage) add_stages(ground, folded, range, ends, alone, price);
}

}  // namespace

Ticks flow_latency(const CollectiveTime& alone) {
  return to_ticks(std::max(Seconds(0), alone.time - alone.transfer));
}

FlowPrice flow_price(const Collective& collective, const Fabric& fabric,
                     const CollectiveCosts& costs, const JobGround& job,
                     const Conditions& conditions, const FlowOptions& options) {
  const CollectiveTime alone = collective_time(collective, fabric, costs);
  FlowPrice price{.time = alone};
  price.undisturbed = alone.time - alone.transfer + loaded_transfer(collective, alone, fabric, job);
  // Inside a healthy domain nothing is shared that the alpha-beta model does not know.
  if (collective.group.domains <= 1 && conditions.scale_up_faults.empty()) return price;
  const auto small = short_job(collective, alone, fabric, job, conditions, options);
  FlowGround ground = small ? FlowGround(fabric, small->shape, small->job, options)
                            : FlowGround(fabric, job, conditions, options);
  const FlowRange range = ground.add(small ? small->collective : collective, alone);
  if (range.first == range.last) return price;
  const Folded folded = options.folded ? fold(ground.table()) : unfolded(ground.table());
  price.flows = ground.table().flows.size();
  price.classes = folded.table.flows.size();
  const double bytes = rank_bytes(range, alone);
  const std::vector<Ticks> ends = run_flows(ground, folded, range, bytes).ends;
  const Ticks end = *std::max_element(ends.begin(), ends.end());
  set_transfer(end, alone, price);
  if (stages_differ(collective, small.has_value(), job, conditions))
    add_stages(ground, folded, range, ends, alone, price);
  add_layers(ground, range, bytes, price);
  if (small)
    for (std::size_t i = 0; i < price.bytes.size(); ++i) price.bytes[i] *= small->layer_scale[i];
  find_busiest(ground, folded, range, bytes, to_seconds(end).si(), price);
  return price;
}

FlowPrice ends_price(const Collective& collective, const Fabric& fabric,
                     const CollectiveCosts& costs, const JobGround& job,
                     const Conditions& conditions, const FlowOptions& options, LaidFlows& flows) {
  const CollectiveTime alone = collective_time(collective, fabric, costs);
  FlowPrice price{.time = alone};
  if (collective.group.domains <= 1 && conditions.scale_up_faults.empty()) return price;
  if (short_job(collective, alone, fabric, job, conditions, options))
    return flow_price(collective, fabric, costs, job, conditions, options);
  const LaidFlows::Laid& laid = flows.of(collective, alone);
  if (laid.range.first == laid.range.last) return price;
  const double bytes = rank_bytes(laid.range, alone);
  run_alone(laid.ground, laid.range, bytes, alone, collective, conditions, price);
  add_layers(laid.ground, laid.range, bytes, price);
  return price;
}

}  // namespace orrery
