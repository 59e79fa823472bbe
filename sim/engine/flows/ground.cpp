// SPDX-License-Identifier: Apache-2.0
// Turns collectives into flows on a fabric's links, for all ranks of a job.
#include "sim/engine/flows/ground.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/errors/check.h"
#include "sim/engine/collectives/domain_edges.h"

namespace orrery {
namespace {

constexpr LinkIndex no_link = UINT32_MAX;
constexpr int engine_tier = -1;
constexpr std::int64_t no_wire = -1;

RoutingOptions routing_options(const Fabric& fabric, const Conditions& conditions,
                               const FlowOptions& flow) {
  RoutingOptions options = routing_of(fabric);
  if (flow.spread_hashed) options.routing = Routing::spray;
  options.seed = conditions.seed;
  options.bundled = flow.folded && options.routing != Routing::ecmp;
  return options;
}

// Accelerators that the wiring must reach: the job's, and those of other traffic and faults.
std::int64_t reached(const JobGround& job, const Conditions& conditions) {
  std::int64_t domains = job.domains();
  for (const std::int64_t at : job.domain_at) domains = std::max(domains, at + 1);
  std::int64_t count = std::max(domains * job.domain, job.cluster);
  for (const BackgroundTraffic& b : conditions.background)
    count = std::max(count, b.first_gpu + b.gpus);
  return count;
}

}  // namespace

JobGround JobGround::side_by_side() const {
  JobGround job = *this;
  job.domain_at.clear();
  job.cluster = 0;
  return job;
}

FlowGround::FlowGround(const Fabric& fabric, const JobGround& job, const Conditions& conditions,
                       const FlowOptions& options)
    : fabric_(fabric),
      job_(job),
      conditions_(conditions),
      options_(options),
      router_(fabric, reached(job, conditions), routing_options(fabric, conditions, options),
              conditions.faults) {
  CHECK_THAT(job.ranks >= 1 && job.ranks_per_domain >= 1, "a job without ranks");
  CHECK_THAT(!job.scattered() || std::ssize(job.domain_at) == job.domains(),
             "a scattered job has a place for each of its domains");
  const std::int64_t reach = job.scattered() ? reached(job, {}) : job.domains() * job.domain;
  for (std::size_t i = 0; i < conditions.scale_up_faults.size(); ++i) {
    const std::int64_t gpu = conditions.scale_up_faults[i].gpu;
    if (gpu < 0 || gpu >= reach)
      throw Error({.path = fmt::format("scale_up_faults[{}].gpu", i),
                   .found = fmt::format("{}", gpu),
                   .expected = fmt::format("0 to {}", reach - 1)});
  }
  split_positions();
  for (const BackgroundTraffic& b : conditions.background) add_background(b);
}

FlowGround::FlowGround(const Fabric& fabric, const ClosShape& shape, const JobGround& job,
                       const FlowOptions& options)
    : fabric_(fabric),
      job_(job),
      options_(options),
      router_(fabric, shape, routing_options(fabric, {}, options)) {
  split_positions();
}

// Ranks of a domain fall into classes; unfolded, every rank is its own.
void FlowGround::split_positions() {
  const std::int64_t used = std::min(job_.ranks_per_domain, job_.ranks);
  const bool wired = !router_.shape().tiers.empty();
  const std::vector<int> classes =
      wired ? router_.position_classes(used) : std::vector<int>(static_cast<std::size_t>(used), 0);
  std::map<std::pair<int, std::int64_t>, std::vector<std::int64_t>> members;
  for (std::int64_t p = 0; p < used; ++p) {
    const bool broken =
        std::any_of(conditions_.scale_up_faults.begin(), conditions_.scale_up_faults.end(),
                    [&](const ScaleUpFault& f) { return f.gpu % job_.domain == p; });
    const bool single = !options_.folded || options_.each_rank || broken;
    members[{classes[static_cast<std::size_t>(p)], single ? p : -1}].push_back(p);
  }
  for (const auto& alike : members) {
    const std::vector<std::int64_t>& positions = alike.second;
    Position at{.first = positions.front(), .ranks = static_cast<double>(positions.size())};
    const auto count_like = [&](auto&& of) {
      return static_cast<double>(
          std::count_if(positions.begin(), positions.end(),
                        [&](std::int64_t p) { return of(p) == of(at.first); }));
    };
    if (wired) {
      at.on_nic = count_like([&](std::int64_t p) { return router_.nic_of(p); });
      at.on_leaf = count_like([&](std::int64_t p) { return router_.leaf_of(p); });
      at.on_rail = count_like([&](std::int64_t p) { return p % router_.shape().rails; });
    }
    positions_.push_back(at);
  }
  place_of_.resize(static_cast<std::size_t>(used));
  for (std::size_t i = 0; i < positions_.size(); ++i)
    place_of_[static_cast<std::size_t>(positions_[i].first)] = i;
}

double FlowGround::sharing_ranks(const LinkName& name, const Position& p) const {
  switch (name.kind) {
    case LinkKind::nic_out:
    case LinkKind::nic_in:
      return p.on_nic;
    case LinkKind::up:
    case LinkKind::down:
      // Rails meet at the spines, if at all.
      if (name.tier == 0) return p.on_leaf;
      return fabric_.scale_out.kind == ScaleOutKind::rail_only ? p.on_rail : p.ranks;
    case LinkKind::site_out:
    case LinkKind::site_in:
      return p.ranks;
  }
  return 1;
}

LinkIndex FlowGround::link_of(std::int64_t number, const LinkName& name) {
  const auto fresh = static_cast<LinkIndex>(table_.links.size());
  const auto [index, added] = by_number_.find_or_add(number, fresh);
  if (!added) return index;
  const BundleSize size = router_.size(name);
  table_.add_link(size.capacity, static_cast<double>(size.links));
  const bool nic = name.kind == LinkKind::nic_out || name.kind == LinkKind::nic_in;
  const bool site = name.kind == LinkKind::site_out || name.kind == LinkKind::site_in;
  return name_link(index, nic ? 1 : site ? 4 : 2 + std::min<int>(name.tier, 1), name, number);
}

// Of a link that was just added.
LinkIndex FlowGround::name_link(LinkIndex link, int tier, const LinkName& name,
                                std::int64_t number) {
  tiers_.push_back(tier);
  names_.push_back(name);
  numbers_.push_back(number);
  return link;
}

LinkIndex FlowGround::port_of(std::int64_t domain, std::size_t position) {
  const std::size_t slot = static_cast<std::size_t>(domain) * positions_.size() + position;
  if (ports_.size() <= slot) ports_.resize(slot + 1, no_link);
  if (ports_[slot] != no_link) return ports_[slot];
  const Position& p = positions_[position];
  double rate = fabric_.scale_up.bandwidth.get().si();
  for (const ScaleUpFault& f : conditions_.scale_up_faults)
    if (f.gpu == accelerator(domain, p.first)) rate *= f.remaining;
  ports_[slot] = table_.add_link(rate, p.ranks);
  return name_link(ports_[slot], 0, {.group = accelerator(domain, p.first)}, no_wire);
}

void FlowGround::begin_collective() {
  ++colour_;
  engines_.clear();
}

LinkIndex FlowGround::engine_of(std::int64_t domain, std::size_t position, double rate) {
  const std::size_t slot = static_cast<std::size_t>(domain) * positions_.size() + position;
  if (engines_.size() <= slot) engines_.resize(slot + 1, no_link);
  if (engines_[slot] != no_link) return engines_[slot];
  const Position& p = positions_[position];
  engines_[slot] = table_.add_link(rate, p.ranks);
  return name_link(engines_[slot], engine_tier, {.group = accelerator(domain, p.first)}, no_wire);
}

// Queue pairs that meet on a link add up there.
void FlowGround::add_route(std::int64_t from, std::int64_t to, std::uint64_t label,
                           const Position& p) {
  uses_.clear();
  if (!hashed() || fabric_.sites.accelerators > 0) {
    route_.clear();
    router_.route(from, to, label, route_);
    for (const RouteLink& r : route_)
      uses_.push_back({.link = link_of(r.link), .weight = r.share * sharing_ranks(r.link, p)});
    return;
  }
  pairs_.clear();
  router_.route_pairs(from, to, label, pairs_);
  for (const auto& [number, r] : pairs_) {
    const LinkIndex link = link_of(number, r.link);
    const double weight = r.share * sharing_ranks(r.link, p);
    if (use_of_.size() <= link) use_of_.resize(table_.links.size() + 1, 0);
    std::uint32_t& use = use_of_[link];
    if (use < uses_.size() && uses_[use].link == link) {
      uses_[use].weight += weight;
      continue;
    }
    use = static_cast<std::uint32_t>(uses_.size());
    uses_.push_back({.link = link, .weight = weight});
  }
}

// A message for another position goes over the scale-up links to the rank on its receiver's rail,
// and from there over that one's NIC (PXN).
void FlowGround::add_edge(const DomainEdge& e, std::size_t from, std::size_t to,
                          std::uint64_t label, const Rates& rates) {
  const Position &sends = positions_[from], &receives = positions_[to];
  add_route(accelerator(e.from, receives.first), accelerator(e.to, receives.first), label, sends);
  uses_.push_back({.link = engine_of(e.from, from, rates.engine), .weight = 1});
  const double port = rates.port_share + (from == to ? 0 : 1);
  if (port > 0) uses_.push_back({.link = port_of(e.from, from), .weight = port});
  table_.add_flow({.bytes = e.share, .colour = colour_, .count = sends.ranks}, uses_);
  homes_.push_back(e.from);
}

void FlowGround::add_edges(const std::vector<DomainEdge>& edges, const Rates& rates) {
  std::uint64_t label = 0;
  for (const DomainEdge& e : edges)
    for (std::size_t i = 0; i < positions_.size(); ++i) add_edge(e, i, i, label++, rates);
}

// Switches reduce: every NIC sends its part of the buffer up once and gets the result once; a leaf
// passes one such part on towards the root and one back down, however many domains are below it.
void FlowGround::add_reduction_tree(std::span<const std::int64_t> domains, std::size_t position,
                                    const Rates& rates) {
  if (domains.size() < 2) return;
  std::vector<RouteLink> out, back;
  std::vector<FlowUse> uses;
  const Position& p = positions_[position];
  std::int64_t head = -1;  // the first domain under the leaf at hand
  for (std::size_t j = 0; j < domains.size(); ++j) {
    const std::int64_t x = accelerator(domains[j], p.first);
    const std::int64_t peer = accelerator(j == 0 ? domains.back() : domains.front(), p.first);
    const bool passes_on = head < 0 || router_.tier_between(head, x) > 1;
    if (passes_on) head = x;
    out.clear();
    back.clear();
    uses.clear();
    router_.route(x, peer, 0, out);
    router_.route(peer, x, 0, back);
    const auto take = [&](const std::vector<RouteLink>& links, LinkKind nic, LinkKind trunk) {
      for (const RouteLink& r : links)
        if (r.link.kind == nic || (passes_on && r.link.kind == trunk))
          uses.push_back({.link = link_of(r.link), .weight = r.share * sharing_ranks(r.link, p)});
    };
    take(out, LinkKind::nic_out, LinkKind::up);
    take(back, LinkKind::nic_in, LinkKind::down);
    uses.push_back({.link = engine_of(domains[j], position, rates.engine), .weight = 1});
    if (rates.port_share > 0)
      uses.push_back({.link = port_of(domains[j], position), .weight = rates.port_share});
    table_.add_flow({.bytes = 1, .colour = colour_, .count = p.ranks}, uses);
    homes_.push_back(domains[j]);
  }
}

void FlowGround::add_inside(std::int64_t domain, std::size_t position, double rate) {
  const FlowUse uses[] = {{.link = engine_of(domain, position, rate), .weight = 1},
                          {.link = port_of(domain, position), .weight = 1}};
  table_.add_flow({.bytes = 1, .colour = colour_, .count = positions_[position].ranks}, uses);
  homes_.push_back(domain);
}

std::pair<FlowRange, FlowGround::Rates> FlowGround::begin_flows(const Collective& collective,
                                                                const CollectiveTime& alone) {
  begin_collective();
  FlowRange range{.first = static_cast<FlowIndex>(table_.flows.size())};
  const double seconds = alone.transfer.si();
  const double up = alone.scale_up_bytes.si(), out = alone.scale_out_bytes.si();
  range.crosses = collective.group.domains > 1 && out > 0;
  if (!(seconds > 0)) return {range, {}};
  if (range.crosses) return {range, {out / seconds, exact_share(up / out)}};
  return {range, {.engine = up / seconds}};
}

FlowRange FlowGround::end_collective(FlowRange range, const CollectiveTime& alone) {
  range.last = static_cast<FlowIndex>(table_.flows.size());
  // The few packets of a small message do not queue behind bulk: NICs and switches serve queue
  // pairs in turn, so that it passes at once whatever the others send.
  const int priority = alone.protocol == CollectiveProtocol::ll ? 1 : 0;
  for (FlowIndex f = range.first; f < range.last; ++f) table_.flows[f].priority = priority;
  return range;
}

FlowRange FlowGround::add(const Collective& collective, const CollectiveTime& alone) {
  const auto [range, rates] = begin_flows(collective, alone);
  if (rates.engine > 0 && range.crosses) {
    if (alone.algorithm == CollectiveAlgorithm::collnet) {
      std::vector<std::int64_t> domains;
      for (const DomainGroup& group : domain_groups(collective.group, job_.domains())) {
        domains.clear();
        for (std::int64_t j = 0; j < group.count; ++j) domains.push_back(group.at(j));
        for (std::size_t i = 0; i < positions_.size(); ++i) add_reduction_tree(domains, i, rates);
      }
    } else {
      add_edges(domain_edges(collective.kind, alone.algorithm, collective.group, job_.domains(),
                             {.seed = conditions_.seed}),
                rates);
    }
  } else if (rates.engine > 0) {
    for (std::int64_t x = 0; x < job_.domains(); ++x)
      for (std::size_t i = 0; i < positions_.size(); ++i) add_inside(x, i, rates.engine);
  }
  return end_collective(range, alone);
}

FlowRange FlowGround::add_laid(const FlowGround& laid, FlowRange range) {
  begin_collective();
  std::vector<LinkIndex> here(laid.table_.links.size(), no_link);
  const std::size_t positions = positions_.size();
  for (std::size_t slot = 0; slot < laid.ports_.size(); ++slot)
    if (laid.ports_[slot] != no_link)
      here[laid.ports_[slot]] =
          port_of(static_cast<std::int64_t>(slot / positions), slot % positions);
  for (std::size_t slot = 0; slot < laid.engines_.size(); ++slot)
    if (const LinkIndex engine = laid.engines_[slot]; engine != no_link)
      here[engine] = engine_of(static_cast<std::int64_t>(slot / positions), slot % positions,
                               laid.table_.links[engine].capacity);
  for (LinkIndex l = 0; l < here.size(); ++l)
    if (laid.numbers_[l] != no_wire) here[l] = link_of(laid.numbers_[l], laid.names_[l]);
  const auto first = static_cast<FlowIndex>(table_.flows.size());
  for (FlowIndex f = range.first; f < range.last; ++f) {
    const std::span<const FlowUse> uses = laid.table_.uses_of(laid.table_.flows[f]);
    uses_.assign(uses.begin(), uses.end());
    for (FlowUse& use : uses_) use.link = here[use.link];
    FlowEntry flow = laid.table_.flows[f];
    flow.colour = colour_;
    table_.add_flow(flow, uses_);
    homes_.push_back(laid.homes_[f]);
  }
  return {.first = first,
          .last = static_cast<FlowIndex>(table_.flows.size()),
          .crosses = range.crosses};
}

bool FlowGround::retune(const CollectiveTime& alone, FlowRange& range) {
  const double seconds = alone.transfer.si();
  const double up = alone.scale_up_bytes.si(), out = alone.scale_out_bytes.si();
  if (!range.crosses || !(seconds > 0) || !(out > 0)) return false;
  const double port = exact_share(up / out);
  const bool loads_ports = std::find(tiers_.begin(), tiers_.end(), 0) != tiers_.end();
  if ((port > 0) != loads_ports) return false;
  for (LinkIndex l = 0; l < tiers_.size(); ++l)
    if (tiers_[l] == engine_tier) table_.links[l].capacity = out / seconds;
  if (loads_ports)
    for (FlowUse& use : table_.uses)
      if (tiers_[use.link] == 0) use.weight = port;
  const int priority = alone.protocol == CollectiveProtocol::ll ? 1 : 0;
  for (FlowIndex f = range.first; f < range.last; ++f) table_.flows[f].priority = priority;
  return true;
}

FlowRange FlowGround::add_background(const BackgroundTraffic& traffic) {
  begin_collective();
  FlowRange range{.first = static_cast<FlowIndex>(table_.flows.size()), .crosses = true};
  const std::int64_t domains = traffic.gpus / job_.domain;
  const bool ring = traffic.pattern == BackgroundTraffic::Pattern::ring;
  const GroupShape group{.size = domains, .domains = domains};
  const double nic = fabric_.scale_out.nic_bandwidth.get().si() *
                     fabric_.scale_out.nics_per_accelerator.get() *
                     fabric_.scale_out.efficiency.get();
  std::vector<DomainEdge> edges =
      domain_edges(ring ? CollectiveKind::all_reduce : CollectiveKind::all_to_all,
                   ring ? CollectiveAlgorithm::ring : CollectiveAlgorithm::direct, group, domains,
                   {.seed = conditions_.seed});
  const std::int64_t first = traffic.first_gpu / job_.domain;
  for (DomainEdge& edge : edges) edge = {edge.from + first, edge.to + first, edge.share};
  others_ = true;
  add_edges(edges, {.engine = nic * traffic.load});
  others_ = false;
  range.last = static_cast<FlowIndex>(table_.flows.size());
  for (FlowIndex f = range.first; f < range.last; ++f) table_.flows[f].bytes = infinite;
  return range;
}

std::string FlowGround::describe(LinkIndex link) const {
  const LinkName& n = names_[link];
  if (tiers_[link] == engine_tier) return fmt::format("library on accelerator {}", n.group);
  if (tiers_[link] == 0) return fmt::format("scale-up port of accelerator {}", n.group);
  const std::string plane =
      router_.shape().planes > 1 ? fmt::format(", plane {}", n.plane) : std::string();
  switch (n.kind) {
    case LinkKind::nic_out:
      return fmt::format("accelerator {} to its leaf{}", n.group, plane);
    case LinkKind::nic_in:
      return fmt::format("leaf to accelerator {}{}", n.group, plane);
    case LinkKind::up:
    case LinkKind::down: {
      const char* const names[] = {"leaf", "spine", "core", "top"};
      const std::string lower =
          fmt::format("{} {} of group {}", names[std::min<int>(n.tier, 2)], n.lower, n.group);
      const std::string upper = fmt::format("{} {}", names[std::min<int>(n.tier + 1, 3)], n.upper);
      return n.kind == LinkKind::up ? lower + " up to " + upper + plane
                                    : upper + " down to " + lower + plane;
    }
    case LinkKind::site_out:
      return fmt::format("out of site {}", n.group);
    case LinkKind::site_in:
      return fmt::format("into site {}", n.group);
  }
  return {};
}

}  // namespace orrery
