// SPDX-License-Identifier: Apache-2.0
// Knows which ranks of a job sit where: rank order over the fabric and the shape of every group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/engine/scattered_ranks.h"
#include "topologies/fabric.h"
#include "workloads/layout/layout.h"

namespace orrery {

// What a collective's cost depends on: how a group lies over scale-up domains and NICs. All groups
// of a dimension have the same shape or the worst one is taken.
struct GroupShape {
  std::int64_t size = 1;        // ranks
  std::int64_t per_domain = 1;  // ranks of the group in one scale-up domain
  std::int64_t domains = 1;     // scale-up domains that the group spans
  std::int64_t span = 1;     // accelerators between its first and last rank (which tier it needs)
  std::int64_t sharing = 1;  // groups of the same kind that use a domain's NICs at once
  std::int64_t domain_step = 1;  // domains from one of the group's domains to its next
  bool operator==(const GroupShape&) const = default;
};

// Two ranks that send to each other, so many accelerators and domains apart (0: in one domain).
// Between domains, `sharing` such pairs use a domain's NICs at once.
GroupShape pair_shape(std::int64_t accelerators, std::int64_t domains, std::int64_t sharing);

// Group shapes of a layout: ranks count along its rank order, by default tp (innermost), cp, dp, pp
// as Megatron-Core does; expert groups are folded over tp x cp x dp in that order.
struct Placement {
  GroupShape tensor, context, data,
      data_context;                         // data_context: dp x cp, gradients of dense parts
  GroupShape context_heads, context_rings;  // parts of context
  GroupShape expert, expert_tensor, expert_data;
  GroupShape expert_ranks;                        // ep x etp: all that hold a layer's experts
  GroupShape shard, shard_replica;                // hybrid sharding: inside and across shard groups
  GroupShape expert_shard, expert_shard_replica;  // the same of experts
  GroupShape embedding;                           // first and last stage
  PathCost pipeline;                              // between neighbouring stages
  GroupShape stage_pair;                          // a rank and its like in the next stage
  std::int64_t ranks_per_domain = 1;              // accelerators used in a domain (64 of 72)
  std::int64_t domains = 1;                       // that hold ranks
};

// Contiguous, from accelerator 0 on, with spare accelerators at the end of each domain; or where
// `scattered` says, which holds every rank of the layout. Then
//   - ranks_per_domain is the most of any domain. It is what the job got, not what the layout would
//     choose: there are no spare accelerators, and groups straddle domains where it is uneven;
//   - where all domains hold as many (the last perhaps fewer), groups fall on them as on
//     neighbouring domains used so far; else they have the shape of the kind's worst group: most
//     domains, and per_domain and sharing as if its ranks were spread over them evenly;
//   - spans are those of the contiguous placement, or the least at which nic_path() takes the tier
//     that some group of the kind needs from where it really is.
Placement place(const Layout& layout, const Fabric& fabric, const ScatteredRanks& scattered = {});

// Why a layout cannot lie on a fabric, in one sentence; nullopt when it can, which place() expects.
std::optional<std::string> unplaceable_reason(const Layout& layout, const Fabric& fabric);

}  // namespace orrery
