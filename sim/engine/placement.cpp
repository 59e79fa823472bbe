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

// Ranks along one axis, or along several that count through neighbouring ranks.
struct Part {
  std::int64_t size = 1, stride = 1;
};
// The ranks of a group, innermost part first; parts with one rank are left out.
using Parts = std::vector<Part>;

// Adjacent parts that count through the same ranks as one part do are one.
void append(Parts& parts, Part part) {
  if (part.size == 1) return;
  if (!parts.empty() && parts.back().size * parts.back().stride == part.stride)
    parts.back().size *= part.size;
  else
    parts.push_back(part);
}

// Of a job's ranks those that differ along these axes only.
Parts ranks_along(const Layout& l, std::initializer_list<Parallel> axes) {
  Parts parts;
  for (const Parallel axis : l.rank_order.axes())
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      append(parts, {l.size(axis), l.stride(axis)});
  return parts;
}

// Every `step`-th of the ranks, `count` of them; nullopt where that is no product of parts.
std::optional<Parts> every(const Parts& ranks, std::int64_t step, std::int64_t count) {
  if (count <= 1) return Parts{};
  if (ranks.size() <= 1) return Parts{{count, step * (ranks.empty() ? 1 : ranks.front().stride)}};
  Parts out;
  for (const Part& part : ranks) {
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
GroupShape shape(const Parts& parts, const Machine& m) {
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

Placement place(const Layout& l, const Fabric& fabric) {
  const std::int64_t domain = fabric.scale_up.domain;
  const Machine m{.job = l.gpus(), .used = ranks_per_domain(l, domain), .domain = domain};
  CHECK_THAT(m.job >= 1 && domain >= 1, "a layout without ranks");
  const ShardWays ways = shard_ways(l);
  const std::int64_t experts = l.ep * l.etp;
  const Parts context = ranks_along(l, {Parallel::cp});
  const Parts replica = ranks_along(l, {Parallel::cp, Parallel::dp});
  const Parts whole_stage = ranks_along(l, {Parallel::tp, Parallel::cp, Parallel::dp});
  const auto shape_of = [&](const Parts& ranks, std::int64_t step, std::int64_t count) {
    const std::optional<Parts> parts = every(ranks, step, count);
    CHECK_THAT(parts, "groups that the rank order splits unevenly");
    return shape(*parts, m);
  };
  Placement p;
  p.ranks_per_domain = m.used;
  p.tensor = shape(ranks_along(l, {Parallel::tp}), m);
  p.context = shape(context, m);
  p.context_heads = shape_of(context, 1, l.context_heads());
  p.context_rings = shape_of(context, l.context_heads(), l.context_rings());
  p.data = shape(ranks_along(l, {Parallel::dp}), m);
  p.data_context = shape(replica, m);
  p.expert_tensor = shape_of(whole_stage, 1, l.etp);
  p.expert = shape_of(whole_stage, l.etp, l.ep);
  p.expert_ranks = shape_of(whole_stage, 1, experts);
  p.expert_data = shape_of(whole_stage, experts, ways.expert * ways.expert_copies);
  p.shard = shape_of(replica, 1, ways.dense);
  p.shard_replica = shape_of(replica, ways.dense, ways.dense_copies);
  p.expert_shard = shape_of(whole_stage, experts, ways.expert);
  p.expert_shard_replica = shape_of(whole_stage, experts * ways.expert, ways.expert_copies);
  if (l.pp > 1) {
    p.embedding = shape(2, (l.pp - 1) * l.stride(Parallel::pp), m);
    p.pipeline = slowest_neighbours(l, m, fabric);
  } else {
    p.pipeline = path_between(fabric, 0, 0);
  }
  return p;
}

std::optional<std::string> unplaceable_reason(const Layout& l, const Fabric& fabric) {
  const std::int64_t domain = fabric.scale_up.domain;
  if (l.per_domain > domain)
    return fmt::format("per_domain {} of a scale-up domain of {}", l.per_domain, domain);
  if (l.rank_order.is_default()) return std::nullopt;
  const ShardWays ways = shard_ways(l);
  const Parts replica = ranks_along(l, {Parallel::cp, Parallel::dp});
  const Parts stage = ranks_along(l, {Parallel::tp, Parallel::cp, Parallel::dp});
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
