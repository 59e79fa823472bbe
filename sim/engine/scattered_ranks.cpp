// SPDX-License-Identifier: Apache-2.0
// Counts the domains and switches that groups of scattered ranks lie on.
#include "sim/engine/scattered_ranks.h"

#include <algorithm>
#include <numeric>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// All sums of one multiple of each part, the first part's fastest: ascending.
std::vector<std::int64_t> sums_of(const RankParts& parts) {
  std::vector<std::int64_t> sums = {0};
  for (const RankPart& part : parts) {
    const std::size_t below = sums.size();
    sums.reserve(below * static_cast<std::size_t>(part.size));
    for (std::int64_t i = 1; i < part.size; ++i)
      for (std::size_t j = 0; j < below; ++j) sums.push_back(sums[j] + i * part.stride);
  }
  return sums;
}

// First ranks of the groups of a kind. Those that lie less than `alike` ranks from one of them on,
// in groups with the same strides, see what it sees: they are left out.
std::vector<std::int64_t> firsts_of(const RankParts& group, std::int64_t ranks,
                                    std::int64_t alike) {
  RankParts apart;
  std::int64_t below = 1;
  for (const RankPart& part : group) {
    const std::int64_t step = below == 1 ? std::gcd(alike, part.stride) : below;
    apart.push_back({.size = part.stride / step, .stride = step});
    below = part.size * part.stride;
  }
  apart.push_back({.size = ranks / below, .stride = below});
  return sums_of(apart);
}

}  // namespace

std::int64_t ScatteredRanks::ranks() const {
  std::int64_t sum = 0;
  for (const RankBlock& block : blocks) sum += block.ranks;
  return sum;
}

std::optional<std::int64_t> ScatteredRanks::rank_on(std::int64_t accelerator) const {
  std::int64_t first = 0;
  for (const RankBlock& block : blocks) {
    const std::int64_t at = accelerator - block.accelerator;
    if (at >= 0 && at < block.ranks) return first + at;
    first += block.ranks;
  }
  return std::nullopt;
}

std::vector<DomainRanks> domains_of(const ScatteredRanks& scattered, std::int64_t domain) {
  std::vector<DomainRanks> domains;
  for (const RankBlock& block : scattered.blocks) {
    const std::int64_t end = block.accelerator + block.ranks;
    for (std::int64_t a = block.accelerator; a < end;) {
      const std::int64_t here = a / domain, next = std::min(end, (here + 1) * domain);
      if (domains.empty() || domains.back().domain != here) domains.push_back({.domain = here});
      domains.back().ranks += next - a;
      a = next;
    }
  }
  return domains;
}

ScatteredGroups::ScatteredGroups(const ScatteredRanks& scattered, const Fabric& fabric)
    : domains_(domains_of(scattered, fabric.scale_up.domain)), size_(fabric.scale_up.domain) {
  const ScaleOut& out = fabric.scale_out;
  std::vector<std::int64_t> reaches;
  if (out.kind != ScaleOutKind::none) {
    for (std::size_t t = 0; t + 1 < out.tiers.size(); ++t) reaches.push_back(out.tiers[t].reach);
    reaches.push_back(fabric.sites.accelerators);
  }
  levels_ = reaches.size() + 1;
  const std::int64_t ranks = scattered.ranks();
  domain_of_.reserve(static_cast<std::size_t>(ranks));
  units_.reserve(domains_.size() * levels_);
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    const std::int64_t first = domains_[d].domain * size_;
    for (const std::int64_t reach : reaches)
      units_.push_back(reach == 0 ? 0 : static_cast<std::int32_t>(first / reach));
    units_.push_back(0);
    domain_of_.insert(domain_of_.end(), static_cast<std::size_t>(domains_[d].ranks),
                      static_cast<std::int32_t>(d));
    fullest_ = std::max(fullest_, domains_[d].ranks);
    common_ = std::gcd(common_, domains_[d].ranks);
    even_ &= d == 0 || domains_[d - 1].ranks == domains_[0].ranks;
  }
  even_ &= domains_.empty() || domains_.back().ranks <= domains_[0].ranks;
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), INT64_C(0));
  const std::int64_t none[] = {0};
  if (ranks > 0) highest_tier_ = worst_over(none, all).tier;
}

WorstGroup ScatteredGroups::worst_over(std::span<const std::int64_t> firsts,
                                       std::span<const std::int64_t> members) const {
  WorstGroup worst;
  std::size_t level = 0;  // that all groups so far need
  const auto at = [&](std::int64_t rank) { return domain_of_[static_cast<std::size_t>(rank)]; };
  for (const std::int64_t base : firsts) {
    const std::int32_t first = at(base + members.front());
    std::int32_t last = first;
    std::int64_t touched = 1, step = 1;
    for (const std::int64_t member : members) {
      const std::int32_t here = at(base + member);
      if (here == last) continue;
      if (++touched == 2) step = here - first;
      last = here;
      const bool higher = unit(level, here) != unit(level, first);
      while (unit(level, here) != unit(level, first)) ++level;
      if (higher || worst.tier == 0) {
        worst.tier = static_cast<int>(level) + 1;
        worst.from = domains_[static_cast<std::size_t>(first)].domain * size_;
        worst.to = domains_[static_cast<std::size_t>(here)].domain * size_;
      }
    }
    if (touched <= worst.domains) continue;
    worst.domains = touched;
    worst.step = step;
  }
  return worst;
}

WorstGroup ScatteredGroups::worst(const RankParts& group) const {
  return worst(group, sums_of(group));
}

WorstGroup ScatteredGroups::worst(const RankParts& group,
                                  std::span<const std::int64_t> members) const {
  return worst_over(firsts_of(group, ranks(), common_), members);
}

std::int64_t least_span(const Fabric& fabric, int tier) {
  if (tier <= 1) return 1;
  const std::vector<Tier>& tiers = fabric.scale_out.tiers;
  const auto below = static_cast<std::size_t>(tier) - 2;
  return (below + 1 < tiers.size() ? tiers[below].reach : fabric.sites.accelerators) + 1;
}

}  // namespace orrery
