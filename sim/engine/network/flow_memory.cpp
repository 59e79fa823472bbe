// SPDX-License-Identifier: Apache-2.0
// Finds the network of a job's domains side by side, or makes it.
#include "sim/engine/network/flow_memory.h"

#include <algorithm>

namespace orrery {

FlowNetwork& FlowMemory::network(const Fabric& fabric, const CollectiveCosts& costs,
                                 const JobGround& side_by_side, const Conditions& conditions,
                                 const FlowOptions& options) {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) {
    return known.job == side_by_side && known.seed == conditions.seed;
  });
  if (found != known_.end()) return *found->network;
  const Conditions healthy{.seed = conditions.seed};
  known_.push_back({.job = side_by_side,
                    .seed = conditions.seed,
                    .network = std::make_unique<FlowNetwork>(fabric, costs, side_by_side, healthy,
                                                             options, this)});
  return *known_.back().network;
}

LaidFlows& FlowMemory::place(const Fabric& fabric, const JobGround& job, std::uint64_t seed,
                             FlowOptions options) {
  // All the same where nothing is hashed.
  options.spread_hashed |= fabric.scale_out.routing != Routing::ecmp;
  for (LaidFlows& laid : places_)
    if (laid.is_of(job, options.spread_hashed)) return laid;
  constexpr std::size_t ways = 2;  // to take a hashed network's links
  if (places_.size() == ways) places_.pop_back();
  places_.emplace_front(fabric, job, Conditions{.seed = seed}, options);
  return places_.front();
}

}  // namespace orrery
