// SPDX-License-Identifier: Apache-2.0
// Knows how a job's rank order falls on scale-up domains.
#include "sim/engine/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/base/errors/check.h"
#include "workloads/parameters/weight_split.h"

namespace orrery {
namespace {

struct Machine {
  std::int64_t job;     // ranks
  std::int64_t used;    // ranks in one domain
  std::int64_t domain;  // accelerators in one domain
};

bool nests(std::int64_t a, std::int64_t b) { return a % b == 0 || b % a == 0; }

std::int64_t domains_of(std::int64_t ranks, std::int64_t used) { return (ranks + used - 1) / used; }

// The accelerator of a rank: spare ones stand at the end of each domain.
std::int64_t accelerator(std::int64_t rank, const Machine& m) {
  return rank / m.used * m.domain + rank % m.used;
}

// The shape of groups of `size` ranks that are `stride` apart. Exact when groups and domains nest
// (all groups alike); else the worst group's number of domains, with its ranks spread evenly.
GroupShape shape(std::int64_t size, std::int64_t stride, const Machine& m) {
  GroupShape g{.size = size};
  const std::int64_t reach = (size - 1) * stride + 1;  // from the first to the last rank
  if (size <= 1) {
    g.sharing = std::min(m.used, m.job);
    return g;
  }
  const std::int64_t block = size * stride;  // where the next groups of this kind begin
  if (m.job <= m.used || m.used % block == 0) {
    g.per_domain = size;
  } else if (stride >= m.used) {
    g.domains = size;
  } else if (m.used % stride == 0 && block % m.used == 0) {
    g.per_domain = m.used / stride;
    g.domains = size / g.per_domain;
  } else {
    // A group may begin anywhere in a domain.
    g.domains = std::min(size, (reach - 1 + m.used - 1) / m.used + 1);
    g.domains = std::min(g.domains, domains_of(m.job, m.used));
    g.per_domain = std::max<std::int64_t>(1, size / g.domains);
  }
  // Every rank of a domain belongs to one group of the kind.
  g.sharing = std::max<std::int64_t>(1, std::min(m.used, m.job) / g.per_domain);
  g.span = g.domains == 1 ? reach : accelerator(reach - 1, m) + 1;
  // Ranks a domain or more apart skip domains; closer ones have some in every domain they pass.
  g.domain_step = std::max<std::int64_t>(1, stride / m.used);
  return g;
}

// Adjacent parts that count through the same ranks as one part do are one.
void append(RankParts& parts, RankPart part) {
  if (part.size == 1) return;
  if (!parts.empty() && parts.back().size * parts.back().stride == part.stride)
    parts.back().size *= part.size;
  else
    parts.push_back(part);
}

// Of a job's ranks those that differ along these axes only.
RankParts ranks_along(const Layout& l, std::initializer_list<Parallel> axes) {
  RankParts parts;
  for (const Parallel axis : l.rank_order.axes())
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      append(parts, {l.size(axis), l.stride(axis)});
  return parts;
}

// Every `step`-th of the ranks, `count` of them; nullopt where that is no product of parts.
std::optional<RankParts> every(const RankParts& ranks, std::int64_t step, std::int64_t count) {
  if (count <= 1) return RankParts{};
  if (ranks.size() <= 1)
    return RankParts{{count, step * (ranks.empty() ? 1 : ranks.front().stride)}};
  RankParts out;
  for (const RankPart& part : ranks) {
    if (count == 1) break;
    if (!nests(step, part.size)) return std::nullopt;
    if (step >= part.size) {
      step /= part.size;
      continue;
    }
    const std::int64_t here = part.size / step;
    if (!nests(here, count)) return std::nullopt;
    append(out, {std::min(here, count), part.stride * step});
    count = std::max<std::int64_t>(1, count / here);
    step = 1;
  }
  if (count > 1) return std::nullopt;
  return out;
}

// A group of several parts: the outer parts repeat what lies in the domains of the inner ones.
GroupShape shape(const RankParts& parts, const Machine& m) {
  if (parts.empty()) return shape(1, 1, m);
  GroupShape g = shape(parts.front().size, parts.front().stride, m);
  std::int64_t reach = (parts.front().size - 1) * parts.front().stride + 1;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const GroupShape outer = shape(parts[i].size, parts[i].stride, m);
    if (g.domains == 1) g.domain_step = outer.domain_step;
    g.domains = g.domains == 1 ? outer.domains : g.domains * outer.size;
    g.size *= outer.size;
    g.per_domain = std::max<std::int64_t>(1, g.size / g.domains);
    g.sharing = std::max<std::int64_t>(1, std::min(m.used, m.job) / g.per_domain);
    reach += (parts[i].size - 1) * parts[i].stride;
    g.span = g.domains == 1 ? reach : accelerator(reach - 1, m) + 1;
  }
  return g;
}

// How many accelerators of a domain the job uses: the most for which blocks of ranks that talk
// much (tp, cp x tp, expert groups) and the job itself are whole domains or parts of one. A group
// of a power of two so takes 64 of 72. Where that would idle half a domain or more, only the inner
// groups stay whole.
std::int64_t ranks_per_domain(const Layout& l, std::int64_t domain) {
  const std::int64_t job = l.gpus();
  if (l.per_domain > 0) return std::min({l.per_domain, domain, job});
  if (job <= domain) return job;
  const std::array<Parallel, 4>& axes = l.rank_order.axes();
  const std::int64_t first = l.size(axes[0]), second = first * l.size(axes[1]),
                     third = second * l.size(axes[2]);
  const auto fits = [&](std::int64_t u, int blocks) {
    return nests(u, first) && (blocks < 2 || nests(u, second)) &&
           (blocks < 3 || nests(u, l.ep * l.etp)) && (blocks < 4 || nests(u, third)) &&
           (blocks < 5 || job % u == 0);
  };
  for (int blocks = 5; blocks >= 1; --blocks)
    for (std::int64_t u = domain; 2 * u > domain; --u)
      if (fits(u, blocks)) return u;
  return domain;
}

// The farthest pair of neighbouring stages among the pipelines that lie differently: every stage's
// last rank sends to the next one's.
PathCost slowest_neighbours(const Layout& l, const Machine& m, const Fabric& fabric) {
  constexpr std::int64_t most_pipelines = 8;
  const std::int64_t stride = l.stride(Parallel::pp), block = stride * l.pp;
  PathCost slowest;
  bool first = true;
  for (std::int64_t b = 0; b < std::min(m.job / block, most_pipelines); ++b) {
    for (std::int64_t s = 1; s < l.pp; ++s) {
      const std::int64_t last = b * block + s * stride - 1;
      const PathCost path =
          path_between(fabric, accelerator(last, m), accelerator(last + stride, m));
      if (first || path.tier > slowest.tier) slowest = path;
      first = false;
    }
  }
  return slowest;
}

// Calls visit(shape, ranks) on every kind of group but those of pipelines.
template <class Visit>
void visit_groups(const Layout& l, Placement& p, const Visit& visit) {
  const ShardWays ways = shard_ways(l);
  const std::int64_t experts = l.ep * l.etp;
  const RankParts context = ranks_along(l, {Parallel::cp});
  const RankParts replica = ranks_along(l, {Parallel::cp, Parallel::dp});
  const RankParts whole_stage = ranks_along(l, {Parallel::tp, Parallel::cp, Parallel::dp});
  const auto some = [&](GroupShape& shape, const RankParts& ranks, std::int64_t step,
                        std::int64_t count) {
    const std::optional<RankParts> parts = every(ranks, step, count);
    CHECK_THAT(parts, "groups that the rank order splits unevenly");
    visit(shape, *parts);
  };
  visit(p.tensor, ranks_along(l, {Parallel::tp}));
  visit(p.context, context);
  some(p.context_heads, context, 1, l.context_heads());
  some(p.context_rings, context, l.context_heads(), l.context_rings());
  visit(p.data, ranks_along(l, {Parallel::dp}));
  visit(p.data_context, replica);
  some(p.expert_tensor, whole_stage, 1, l.etp);
  some(p.expert, whole_stage, l.etp, l.ep);
  some(p.expert_ranks, whole_stage, 1, experts);
  some(p.expert_data, whole_stage, experts, ways.expert * ways.expert_copies);
  some(p.shard, replica, 1, ways.dense);
  some(p.shard_replica, replica, ways.dense, ways.dense_copies);
  some(p.expert_shard, whole_stage, experts, ways.expert);
  some(p.expert_shard_replica, whole_stage, experts * ways.expert, ways.expert_copies);
}

// A rank and its like in the next stage, so many ranks further on.
GroupShape stage_pair(std::int64_t per_stage, int tier, const Machine& m) {
  const std::int64_t domains = tier == 0 ? 0 : std::max<std::int64_t>(1, per_stage / m.used);
  return pair_shape(per_stage, domains, m.used);
}

Placement place_contiguous(const Layout& l, const Fabric& fabric) {
  const std::int64_t domain = fabric.scale_up.domain;
  const Machine m{.job = l.gpus(), .used = ranks_per_domain(l, domain), .domain = domain};
  CHECK_THAT(m.job >= 1 && domain >= 1, "a layout without ranks");
  Placement p;
  p.ranks_per_domain = m.used;
  p.domains = domains_of(m.job, m.used);
  visit_groups(l, p, [&](GroupShape& g, const RankParts& ranks) { g = shape(ranks, m); });
  if (l.pp > 1) {
    p.embedding = shape(2, (l.pp - 1) * l.stride(Parallel::pp), m);
    p.pipeline = slowest_neighbours(l, m, fabric);
    p.stage_pair = stage_pair(l.stride(Parallel::pp), p.pipeline.tier, m);
  } else {
    p.pipeline = path_between(fabric, 0, 0);
  }
  return p;
}

// The shapes of a scattered job's groups.
class ScatteredPlacing {
 public:
  ScatteredPlacing(const Layout& l, const Fabric& fabric, const ScatteredRanks& scattered)
      : l_(l),
        fabric_(fabric),
        groups_(scattered, fabric),
        m_{.job = l.gpus(), .used = groups_.fullest(), .domain = fabric.scale_up.domain} {
    CHECK_THAT(groups_.ranks() == m_.job, "a scattered job has all ranks of its layout");
  }
  Placement placement();

 private:
  void lie(GroupShape& g, const RankParts& ranks);
  void lie_apart(GroupShape& g, std::int64_t size, const WorstGroup& worst) const;
  void raise_span(GroupShape& g, int tier) const;
  void place_stages(Placement& p) const;
  const WorstGroup& worst(const RankParts& ranks);

  const Layout& l_;
  const Fabric& fabric_;
  ScatteredGroups groups_;
  Machine m_;
  std::vector<std::pair<RankParts, WorstGroup>> known_;  // kinds of groups are often the same
};

const WorstGroup& ScatteredPlacing::worst(const RankParts& ranks) {
  for (const auto& [known, worst] : known_)
    if (known == ranks) return worst;
  return known_.emplace_back(ranks, groups_.worst(ranks)).second;
}

void ScatteredPlacing::raise_span(GroupShape& g, int tier) const {
  g.span = std::max(g.span, least_span(fabric_, tier));
}

// The worst group's shape; the span stays.
void ScatteredPlacing::lie_apart(GroupShape& g, std::int64_t size, const WorstGroup& worst) const {
  g.size = size;
  g.domains = worst.domains;
  g.per_domain = std::max<std::int64_t>(1, size / g.domains);
  g.sharing = std::max<std::int64_t>(1, std::min(m_.used, m_.job) / g.per_domain);
  g.domain_step = g.domains == 1 ? 1 : worst.step;
}

// `g` comes with the contiguous placement's span.
void ScatteredPlacing::lie(GroupShape& g, const RankParts& ranks) {
  const std::int64_t span = g.span;
  if (groups_.even() || ranks.empty()) {
    g = shape(ranks, m_);
  } else {
    std::int64_t size = 1;
    for (const RankPart& part : ranks) size *= part.size;
    lie_apart(g, size, worst(ranks));
  }
  g.span = span;
  // No group needs more than the whole job does.
  if (g.domains == 1 || span >= least_span(fabric_, groups_.highest_tier())) return;
  raise_span(g, worst(ranks).tier);
}

void ScatteredPlacing::place_stages(Placement& p) const {
  const std::int64_t per_stage = l_.stride(Parallel::pp);
  const RankParts pipelines = {{.size = l_.pp, .stride = per_stage}};
  const std::int64_t ends[] = {0, (l_.pp - 1) * per_stage};
  const WorstGroup outer = groups_.worst(pipelines, ends);
  const std::int64_t span = p.embedding.span;
  if (groups_.even())
    p.embedding = shape(2, ends[1], m_);
  else
    lie_apart(p.embedding, 2, outer);
  p.embedding.span = span;
  raise_span(p.embedding, outer.tier);
  WorstGroup next;
  for (std::int64_t s = 1; s < l_.pp; ++s) {
    const std::int64_t pair[] = {(s - 1) * per_stage, s * per_stage};
    const WorstGroup found = groups_.worst(pipelines, pair);
    if (s == 1 || found.tier > next.tier) next = found;
  }
  if (next.tier > p.pipeline.tier) p.pipeline = path_between(fabric_, next.from, next.to);
  p.stage_pair = stage_pair(per_stage, p.pipeline.tier, m_);
  // Unevenly filled domains are farther apart than full ones.
  if (!groups_.even() && p.pipeline.tier > 0)
    p.stage_pair.domain_step =
        std::max(p.stage_pair.domain_step, per_stage * groups_.domains() / m_.job);
  raise_span(p.stage_pair, p.pipeline.tier);
}

Placement ScatteredPlacing::placement() {
  Placement p = place_contiguous(l_, fabric_);
  p.ranks_per_domain = m_.used;
  p.domains = groups_.domains();
  visit_groups(l_, p, [&](GroupShape& g, const RankParts& ranks) { lie(g, ranks); });
  if (l_.pp > 1) place_stages(p);
  return p;
}

}  // namespace

GroupShape pair_shape(std::int64_t accelerators, std::int64_t domains, std::int64_t sharing) {
  const bool inside = domains == 0;
  return {.size = 2,
          .per_domain = inside ? 2 : 1,
          .domains = inside ? 1 : 2,
          .span = accelerators + 1,
          .sharing = inside ? 1 : sharing,
          .domain_step = std::max<std::int64_t>(1, domains)};
}

Placement place(const Layout& l, const Fabric& fabric, const ScatteredRanks& scattered) {
  if (scattered.contiguous()) return place_contiguous(l, fabric);
  return ScatteredPlacing(l, fabric, scattered).placement();
}

std::optional<std::string> unplaceable_reason(const Layout& l, const Fabric& fabric) {
  const std::int64_t domain = fabric.scale_up.domain;
  if (l.per_domain > domain)
    return fmt::format("per_domain {} of a scale-up domain of {}", l.per_domain, domain);
  if (l.rank_order.is_default()) return std::nullopt;
  const ShardWays ways = shard_ways(l);
  const RankParts replica = ranks_along(l, {Parallel::cp, Parallel::dp});
  const RankParts stage = ranks_along(l, {Parallel::tp, Parallel::cp, Parallel::dp});
  const std::int64_t experts = l.ep * l.etp;
  if (!every(stage, 1, l.etp) || !every(stage, l.etp, l.ep) ||
      !every(stage, experts, ways.expert * ways.expert_copies))
    return fmt::format("rank order {} splits groups of ep {} x etp {} unevenly",
                       to_text(l.rank_order), l.ep, l.etp);
  if (!every(replica, 1, ways.dense) || !every(replica, ways.dense, ways.dense_copies) ||
      !every(stage, experts, ways.expert) ||
      !every(stage, experts * ways.expert, ways.expert_copies))
    return fmt::format("rank order {} splits shard groups of {} unevenly", to_text(l.rank_order),
                       ways.dense);
  return std::nullopt;
}

}  // namespace orrery
