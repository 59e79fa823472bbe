// SPDX-License-Identifier: Apache-2.0
// Knows on which accelerators of a shared cluster the ranks of a job are, and what of that its
// groups see.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topologies/fabric.h"

namespace orrery {

// A run of neighbouring accelerators.
struct RankBlock {
  std::int64_t accelerator = 0, ranks = 0;
  friend bool operator==(const RankBlock&, const RankBlock&) = default;
};

// Where the ranks of a job are, block after block in rank order. No blocks: contiguous, from
// accelerator 0 on, as place() lays a layout. Blocks may come in any order of accelerators, but the
// ranks of a scale-up domain follow one another: a domain that comes again counts as another one.
struct ScatteredRanks {
  std::vector<RankBlock> blocks;
  // Accelerators of the cluster whose switches the job's traffic passes; 0: as many as it reaches.
  std::int64_t cluster = 0;
  bool contiguous() const { return blocks.empty(); }
  std::int64_t ranks() const;
  // The rank on an accelerator; nullopt where it is not the job's.
  std::optional<std::int64_t> rank_on(std::int64_t accelerator) const;
  friend bool operator==(const ScatteredRanks&, const ScatteredRanks&) = default;
};

// A scale-up domain and how many ranks are on it.
struct DomainRanks {
  std::int64_t domain = 0, ranks = 0;
};
// In rank order; `domain`: accelerators of one.
std::vector<DomainRanks> domains_of(const ScatteredRanks& scattered, std::int64_t domain);

// Ranks along one axis of a layout, or along several that count through neighbouring ranks.
struct RankPart {
  std::int64_t size = 1, stride = 1;
  friend bool operator==(const RankPart&, const RankPart&) = default;
};
// The ranks of a group, innermost part first, each stride a multiple of what the part before it
// counts through; parts with one rank are left out.
using RankParts = std::vector<RankPart>;

// The worst of all groups of a kind, each member for itself.
struct WorstGroup {
  std::int64_t domains = 1;  // scale-up domains touched
  std::int64_t step = 1;     // of these, from its first to its second, in the job's own numbering
  int tier = 0;              // that some two of its ranks need, as PathCost::tier counts
  std::int64_t from = 0, to = 0;  // accelerators that need it
};

// Looks at the groups of a scattered job one by one, which is exact, but for those that must be
// like one that was looked at. A domain lies under the switches of its first accelerator.
class ScatteredGroups {
 public:
  ScatteredGroups(const ScatteredRanks& scattered, const Fabric& fabric);
  std::int64_t ranks() const { return std::ssize(domain_of_); }
  std::int64_t domains() const { return std::ssize(domains_); }
  std::int64_t fullest() const { return fullest_; }  // ranks on a domain
  // All domains have as many ranks, the last perhaps fewer: rank r is on domain r / fullest().
  bool even() const { return even_; }
  int highest_tier() const { return highest_tier_; }  // that any two ranks need
  WorstGroup worst(const RankParts& group) const;
  // Of those ranks only that are `members` ranks, ascending, behind the first of each group.
  WorstGroup worst(const RankParts& group, std::span<const std::int64_t> members) const;

 private:
  WorstGroup worst_over(std::span<const std::int64_t> firsts,
                        std::span<const std::int64_t> members) const;
  std::int32_t unit(std::size_t level, std::int32_t domain) const {
    return units_[static_cast<std::size_t>(domain) * levels_ + level];
  }

  std::vector<DomainRanks> domains_;
  std::vector<std::int32_t> domain_of_;  // of each rank, in the job's own numbering
  // Switch groups that each domain is under, tier by tier, then its site, then all there is:
  // domains that differ up to level i and agree there need tier i + 1.
  std::vector<std::int32_t> units_;
  std::size_t levels_ = 1;
  std::int64_t size_ = 1;                  // accelerators of a domain
  std::int64_t fullest_ = 0, common_ = 0;  // common: divides the ranks on every domain
  bool even_ = true;
  int highest_tier_ = 0;
};

// The least span, in accelerators, at which nic_path() takes a tier.
std::int64_t least_span(const Fabric& fabric, int tier);

}  // namespace orrery
