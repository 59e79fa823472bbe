// SPDX-License-Identifier: Apache-2.0
// Finds shapes of groups, and the engine's collectives for what they do.
#include "sim/chakra/ground.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

// A gather's or a scatter's root has all of it pass its link, as a broadcast's; a barrier is an
// all-reduce of one word.
CollectiveKind kind_for(TraceCollective kind) {
  switch (kind) {
    case TraceCollective::all_reduce:
    case TraceCollective::barrier:
      return CollectiveKind::all_reduce;
    case TraceCollective::all_gather:
      return CollectiveKind::all_gather;
    case TraceCollective::all_to_all:
      return CollectiveKind::all_to_all;
    case TraceCollective::reduce_scatter:
    case TraceCollective::reduce_scatter_block:
      return CollectiveKind::reduce_scatter;
    case TraceCollective::reduce:
    case TraceCollective::gather:
    case TraceCollective::scatter:
    case TraceCollective::broadcast:
      return CollectiveKind::broadcast;
  }
  return CollectiveKind::all_reduce;
}

// As the engine counts them: of an all-gather the result.
double bytes_for(TraceCollective kind, double bytes, std::int64_t ranks) {
  constexpr double word = 4;
  if (kind == TraceCollective::barrier) return word;
  const bool gathers = kind == TraceCollective::all_gather || kind == TraceCollective::gather;
  return gathers ? bytes * static_cast<double>(ranks) : bytes;
}

}  // namespace

TraceGround::TraceGround(const Cluster& cluster, std::int64_t ranks, std::int64_t ranks_per_domain)
    : cluster_(cluster),
      ranks_(ranks),
      domain_(cluster.fabric.scale_up.domain),
      used_(std::min(ranks, ranks_per_domain > 0 ? ranks_per_domain : domain_)),
      network_(cluster.fabric, cluster.collective_costs) {
  if (used_ > domain_)
    throw Error(
        {.file = "traces",
         .path = "ranks_per_domain",
         .found = fmt::format("{}", used_),
         .expected = fmt::format("at most {}, a scale-up domain of {}", domain_, cluster.name)});
}

TraceGround::Kind TraceGround::kind_of(const std::vector<std::int64_t>& ranks) const {
  std::int64_t here = 0;
  while (here < static_cast<std::int64_t>(ranks.size()) &&
         domain_of(ranks[static_cast<std::size_t>(here)]) == domain_of(ranks.front()))
    ++here;
  const std::int64_t stride = ranks.size() > 1 ? ranks[1] - ranks[0] : 0;
  return {static_cast<std::int64_t>(ranks.size()), here, stride};
}

void TraceGround::add_group(const std::vector<std::int64_t>& ranks) {
  if (ranks.size() < 2 || !known_.try_emplace(ranks, true).second) return;
  const Kind kind = kind_of(ranks);
  std::int64_t last = -1;
  for (const std::int64_t rank : ranks) {
    if (domain_of(rank) != last) ++in_domain_[{kind, domain_of(rank)}];
    last = domain_of(rank);
  }
}

GroupShape TraceGround::shape(const std::vector<std::int64_t>& ranks) const {
  GroupShape g{.size = static_cast<std::int64_t>(ranks.size())};
  if (ranks.size() < 2) return g;
  g.domains = 1;
  const Kind kind = kind_of(ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t domain = domain_of(ranks[i]);
    if (i > 0 && domain != domain_of(ranks[i - 1])) ++g.domains;
    const auto count = in_domain_.find({kind, domain});
    if (count != in_domain_.end()) g.sharing = std::max(g.sharing, count->second);
  }
  g.per_domain = std::max<std::int64_t>(1, g.size / g.domains);
  g.span = accelerator(ranks.back()) - accelerator(ranks.front()) + 1;
  const std::int64_t next = domain_of(ranks.back()) - domain_of(ranks.front());
  if (g.domains > 1) g.domain_step = std::max<std::int64_t>(1, next / (g.domains - 1));
  return g;
}

Seconds TraceGround::price(const Collective& c) {
  return c.group.size < 2 ? Seconds(0) : network_.price(c).time;
}

JobGround TraceGround::job() const {
  return {.ranks = ranks_, .ranks_per_domain = used_, .domain = domain_, .cluster = cluster_.gpus};
}

// A trace may ask for what a machine's library does not have.
const Collective& TraceGround::checked(const Collective& c) const {
  for (int a = 0; a < collective_algorithm_count; ++a)
    for (int p = 0; p < collective_protocol_count; ++p)
      if (collective_time_with(c, cluster_.fabric, cluster_.collective_costs,
                               static_cast<CollectiveAlgorithm>(a),
                               static_cast<CollectiveProtocol>(p)))
        return c;
  throw Error({.file = "traces",
               .found = fmt::format("{} over {} ranks", to_text(c.kind), c.group.size),
               .expected = fmt::format("what the collectives of {} can do", cluster_.name)});
}

Collective TraceGround::collective(TraceCollective kind, double bytes,
                                   const GroupShape& group) const {
  const Collective c{
      .kind = kind_for(kind), .group = group, .bytes = Bytes(bytes_for(kind, bytes, group.size))};
  return group.size < 2 ? c : checked(c);
}

Collective TraceGround::message(std::int64_t from, std::int64_t to, double bytes) const {
  const std::int64_t first = std::min(from, to), last = std::max(from, to);
  const GroupShape pair =
      pair_shape(accelerator(last) - accelerator(first), domain_of(last) - domain_of(first), used_);
  return checked({.kind = CollectiveKind::send_receive, .group = pair, .bytes = Bytes(bytes)});
}

}  // namespace orrery
