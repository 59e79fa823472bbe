// SPDX-License-Identifier: Apache-2.0
// Knows how groups of ranks lie on a cluster, from nothing but their ranks.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/chakra/trace.h"
#include "sim/engine/cluster.h"
#include "sim/engine/collectives/collectives.h"
#include "sim/engine/network/ideal_network.h"

namespace orrery {

// What a trace's ranks say to each other, as the engine's collectives. Ranks fill scale-up domains
// in their order.
class TraceGround {
 public:
  // The cluster must outlive it. `ranks_per_domain` 0: all accelerators of a domain.
  TraceGround(const Cluster& cluster, std::int64_t ranks, std::int64_t ranks_per_domain);

  // Counts a group among those that share NICs. Groups with the same ranks count once. To be
  // called for all groups before the first shape.
  void add_group(const std::vector<std::int64_t>& sorted_ranks);
  GroupShape shape(const std::vector<std::int64_t>& sorted_ranks) const;
  // `bytes` as a trace has them. Error where the cluster's library has no such collective.
  Collective collective(TraceCollective kind, double bytes, const GroupShape& group) const;
  // One message. Every rank of a domain sends at once.
  Collective message(std::int64_t from, std::int64_t to, double bytes) const;

  // What one takes on the ideal network.
  Seconds price(const Collective& collective);

  std::int64_t domain_of(std::int64_t rank) const { return rank / used_; }
  std::int64_t accelerator(std::int64_t rank) const {
    return rank / used_ * domain_ + rank % used_;
  }
  JobGround job() const;
  const Cluster& cluster() const { return cluster_; }

 private:
  const Collective& checked(const Collective& collective) const;
  // Groups of a kind: as large, as much of them in a domain, their neighbours as far apart.
  using Kind = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  Kind kind_of(const std::vector<std::int64_t>& ranks) const;

  const Cluster& cluster_;
  std::int64_t ranks_, domain_, used_;
  IdealNetwork network_;
  std::map<std::vector<std::int64_t>, bool> known_;
  std::map<std::pair<Kind, std::int64_t>, std::int64_t> in_domain_;  // groups of a kind
};

}  // namespace orrery
