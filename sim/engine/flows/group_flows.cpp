// SPDX-License-Identifier: Apache-2.0
// Turns the collectives of single groups, named by their ranks, into flows on a fabric's links.
#include <map>

#include "sim/base/errors/check.h"
#include "sim/engine/flows/ground.h"

namespace orrery {

// Edges between the group's domains, in the order in which it has them.
void FlowGround::add_group_edges(std::span<const std::int64_t> ranks,
                                 const std::vector<DomainEdge>& edges, const Rates& rates) {
  std::vector<std::span<const std::int64_t>> in_domain;
  for (std::size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    while (end < ranks.size() && domain_of(ranks[end]) == domain_of(ranks[begin])) ++end;
    in_domain.push_back(ranks.subspan(begin, end - begin));
  }
  std::uint64_t label = 0;
  for (const DomainEdge& e : edges) {
    const auto from = in_domain[static_cast<std::size_t>(e.from)],
               to = in_domain[static_cast<std::size_t>(e.to)];
    const DomainEdge edge{domain_of(from.front()), domain_of(to.front()), e.share};
    for (std::size_t i = 0; i < from.size(); ++i)
      add_edge(edge, position_of(from[i]), position_of(to[i % to.size()]), label++, rates);
  }
}

FlowRange FlowGround::add_group(std::span<const std::int64_t> ranks, const Collective& collective,
                                const CollectiveTime& alone) {
  ORRERY_CHECK(options_.each_rank, "groups by their ranks need every rank by itself");
  const auto [range, rates] = begin_flows(collective, alone);
  if (rates.engine > 0 && range.crosses) {
    if (alone.algorithm == CollectiveAlgorithm::collnet) {
      std::map<std::size_t, std::vector<std::int64_t>> domains;  // of a position
      for (const std::int64_t r : ranks) domains[position_of(r)].push_back(domain_of(r));
      for (const auto& [position, at] : domains) add_reduction_tree(at, position, rates);
    } else {
      GroupShape compact = collective.group;
      compact.domain_step = 1;
      add_group_edges(ranks,
                      domain_edges(collective.kind, alone.algorithm, compact, compact.domains,
                                   {.seed = conditions_.seed}),
                      rates);
    }
  } else if (rates.engine > 0) {
    if (collective.kind == CollectiveKind::send_receive) ranks = ranks.first(1);
    for (const std::int64_t r : ranks) add_inside(domain_of(r), position_of(r), rates.engine);
  }
  return end_collective(range, alone);
}

}  // namespace orrery
