// SPDX-License-Identifier: Apache-2.0
// Holds what a layout decides about the end of a step, and which ranks share parameters there.
#pragma once

#include <algorithm>

#include "sim/engine/placement.h"
#include "workloads/layout/layout.h"
#include "workloads/parameters/weight_split.h"
#include "workloads/stack/stack.h"

namespace orrery {

// What a layout decides about the end of a step alone.
struct Ending {
  int zero_stage = 1;
  Bytes bucket;          // the layout's own; 0: the stack's
  double offloaded = 0;  // share of the optimizer's states that the host updates
};
inline Ending ending_of(const Layout& l) {
  return {l.zero_stage, l.bucket, l.offload_optimizer ? l.optimizer_offload_fraction : 0};
}

// Size of a bucket of parameters that a group of ranks holds.
inline Bytes bucket_size(const Ending& ending, const Stack& stack, const GroupShape& group) {
  if (ending.bucket > Bytes(0)) return ending.bucket;
  return std::max(stack.sharding.bucket.get(),
                  stack.sharding.bucket_per_rank.get() * static_cast<double>(group.size));
}

// Ranks that hold the same parameters: all of them, those that share one copy in `ways` shards, and
// those that hold the same shard of different copies.
struct Replicas {
  const GroupShape &all, &shard, &copies;
  double ways;
};
inline Replicas dense_replicas(const Layout& layout, const Placement& placement) {
  return {.all = placement.data_context,
          .shard = placement.shard,
          .copies = placement.shard_replica,
          .ways = static_cast<double>(shard_ways(layout).dense)};
}
inline Replicas expert_replicas(const Layout& layout, const Placement& placement) {
  return {.all = placement.expert_data,
          .shard = placement.expert_shard,
          .copies = placement.expert_shard_replica,
          .ways = static_cast<double>(shard_ways(layout).expert)};
}

}  // namespace orrery
