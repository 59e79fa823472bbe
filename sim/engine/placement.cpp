// Knows how Megatron's rank order falls on scale-up domains.
#include "sim/engine/placement.h"

#include <algorithm>

#include "sim/base/check.h"

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

// How many accelerators of a domain the job uses: the most for which blocks of ranks that talk
// much (tp, cp x tp, expert groups) and the job itself are whole domains or parts of one. A group
// of a power of two so takes 64 of 72. Where that would idle half a domain or more, only the inner
// groups stay whole.
std::int64_t ranks_per_domain(const Layout& l, std::int64_t domain) {
  const std::int64_t job = l.gpus();
  if (job <= domain) return job;
  const std::int64_t inner = l.tp * l.cp;
  const auto fits = [&](std::int64_t u, int blocks) {
    return nests(u, l.tp) && (blocks < 2 || nests(u, inner)) &&
           (blocks < 3 || nests(u, l.ep * l.etp)) && (blocks < 4 || nests(u, inner * l.dp)) &&
           (blocks < 5 || job % u == 0);
  };
  for (int blocks = 5; blocks >= 1; --blocks)
    for (std::int64_t u = domain; 2 * u > domain; --u)
      if (fits(u, blocks)) return u;
  return domain;
}

// The farthest pair of neighbouring stages; every stage's last rank sends to the next one's.
PathCost slowest_neighbours(std::int64_t stages, std::int64_t stage, const Machine& m,
                            const Fabric& fabric) {
  PathCost slowest;
  for (std::int64_t s = 1; s < stages; ++s) {
    const std::int64_t last = s * stage - 1;
    const PathCost path = path_between(fabric, accelerator(last, m), accelerator(last + stage, m));
    if (s == 1 || path.tier > slowest.tier) slowest = path;
  }
  return slowest;
}

}  // namespace

Placement place(const Layout& l, const Fabric& fabric) {
  const std::int64_t domain = fabric.scale_up.domain;
  const Machine m{.job = l.gpus(), .used = ranks_per_domain(l, domain), .domain = domain};
  CHECK_THAT(m.job >= 1 && domain >= 1, "a layout without ranks");
  const std::int64_t inner = l.tp * l.cp;
  const std::int64_t stage = inner * l.dp;
  const std::int64_t replicas = l.dp * l.cp;
  const std::int64_t shard = l.shard_group > 0 ? std::min(l.shard_group, replicas) : replicas;
  const std::int64_t experts = l.ep * l.etp;
  Placement p;
  p.ranks_per_domain = m.used;
  p.tensor = shape(l.tp, 1, m);
  p.context = shape(l.cp, l.tp, m);
  p.context_heads = shape(l.context_heads(), l.tp, m);
  p.context_rings = shape(l.context_rings(), l.tp * l.context_heads(), m);
  p.data = shape(l.dp, inner, m);
  p.data_context = shape(replicas, l.tp, m);
  p.expert_tensor = shape(l.etp, 1, m);
  p.expert = shape(l.ep, l.etp, m);
  p.expert_data = shape(std::max<std::int64_t>(1, stage / experts), experts, m);
  p.shard = shape(shard, l.tp, m);
  p.shard_replica = shape(replicas / shard, l.tp * shard, m);
  if (l.pp > 1) {
    p.embedding = shape(2, (l.pp - 1) * stage, m);
    p.pipeline = slowest_neighbours(l.pp, stage, m, fabric);
  } else {
    p.pipeline = path_between(fabric, 0, 0);
  }
  return p;
}

}  // namespace orrery
