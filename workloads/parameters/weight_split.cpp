// SPDX-License-Identifier: Apache-2.0
// Counts the ranks that share a copy of parameters, and says when copies stay whole.
#include "workloads/parameters/weight_split.h"

#include <algorithm>
#include <numeric>

namespace orrery {

ShardWays shard_ways(const Layout& layout) {
  const std::int64_t dense = std::max<std::int64_t>(1, layout.dense_replicas());
  const std::int64_t expert = std::max<std::int64_t>(1, layout.expert_replicas());
  ShardWays ways;
  ways.dense = layout.shard_group > 0 ? std::min(layout.shard_group, dense) : dense;
  ways.dense_copies = dense / ways.dense;
  ways.expert_copies = std::gcd(ways.dense_copies, expert);
  ways.expert = expert / ways.expert_copies;
  return ways;
}

bool accumulates_whole(const Layout& layout, const Stack& stack, std::int64_t microbatches) {
  if (layout.zero_stage != 3 || microbatches <= 1) return false;
  return !stack.sharding.reduce_each_microbatch ||
         (layout.pp > 1 && stack.sharding.shard_storage == ShardStorage::parts);
}

bool gathers_once(const Layout& layout, const Stack& stack, std::int64_t microbatches) {
  const bool pipelined = layout.pp > 1 && stack.sharding.shard_storage == ShardStorage::parts;
  return accumulates_whole(layout, stack, microbatches) &&
         (pipelined || !stack.sharding.reshard_after_backward);
}

}  // namespace orrery
