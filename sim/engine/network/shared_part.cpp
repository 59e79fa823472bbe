// SPDX-License-Identifier: Apache-2.0
// Chooses domains of a large job.
#include "sim/engine/network/shared_part.h"

#include <algorithm>
#include <span>

namespace orrery {
namespace {

// Some of the domains of a scattered job, about as many as asked for: of the groups of a tier that
// it is on some that are evenly chosen, at least two, whole; where these are too much, the same
// share of each, taken likewise. Leaves and pods are as full as in the job as far as they fit.
class SharedDomains {
 public:
  SharedDomains(const JobGround& job, const Fabric& fabric) : job_(job), fabric_(fabric) {
    const auto tiers = fabric.scale_out.tiers.size();
    take(job.domain_at, static_cast<std::size_t>(most_shared_domains), tiers);
  }
  std::vector<std::int64_t> taken;

 private:
  using Domains = std::span<const std::int64_t>;
  // `tiers`: those whose groups may still divide them.
  void take(Domains from, std::size_t count, std::size_t tiers) {
    if (tiers == 0 || from.size() <= count) {
      const Domains first = from.first(std::min(count, from.size()));
      taken.insert(taken.end(), first.begin(), first.end());
      return;
    }
    const std::vector<Domains> groups = groups_of(from, fabric_.scale_out.tiers[tiers - 1].reach);
    const std::size_t all = groups.size();
    const std::size_t chosen = std::min(all, std::max<std::size_t>(2, all * count / from.size()));
    const auto nth = [&](std::size_t i) { return groups[(2 * i + 1) * all / (2 * chosen)]; };
    std::size_t sum = 0;
    for (std::size_t i = 0; i < chosen; ++i) sum += nth(i).size();
    for (std::size_t i = 0; i < chosen; ++i) {
      const std::size_t whole = nth(i).size();
      take(nth(i), sum <= count ? whole : std::max<std::size_t>(1, whole * count / sum), tiers - 1);
    }
  }
  std::vector<Domains> groups_of(Domains from, std::int64_t reach) const {
    const auto group = [&](std::int64_t at) { return reach == 0 ? 0 : at * job_.domain / reach; };
    std::vector<Domains> groups;
    for (std::size_t begin = 0, end = 1; begin < from.size(); begin = end++) {
      while (end < from.size() && group(from[end]) == group(from[begin])) ++end;
      groups.push_back(from.subspan(begin, end - begin));
    }
    return groups;
  }

  const JobGround& job_;
  const Fabric& fabric_;
};

}  // namespace

bool is_large(const JobGround& job) { return job.domains() > most_shared_domains; }

JobGround shared_part(JobGround job, const Fabric& fabric) {
  if (!is_large(job)) return job;
  if (job.scattered()) job.domain_at = SharedDomains(job, fabric).taken;
  job.ranks =
      job.ranks_per_domain * (job.scattered() ? std::ssize(job.domain_at) : most_shared_domains);
  return job;
}

Collective shared_part(Collective c) {
  GroupShape& g = c.group;
  g.domain_step = std::min(g.domain_step, most_shared_domains / 2);
  g.domains = std::min(g.domains, most_shared_domains / std::max<std::int64_t>(1, g.domain_step));
  return c;
}

}  // namespace orrery
