// SPDX-License-Identifier: Apache-2.0
// Counts the ranks that share a copy of dense and of expert parameters.
#include "workloads/weight_split.h"

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

}  // namespace orrery
