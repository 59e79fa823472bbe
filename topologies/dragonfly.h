// SPDX-License-Identifier: Apache-2.0
// Knows dragonfly+: groups that are two-tier Clos networks, every pair of groups joined directly.
#pragma once

#include <cstdint>

namespace orrery {

// Closed forms of Shpiner et al. (HiPINEB 2017) for switches of `radix` r (even): a group has r/2
// leaves (r/2 hosts and r/2 uplinks each) and r/2 spines (r/2 links down, r/2 global each), one
// link between a leaf and a spine. All counts are of the network as it stands at `hosts`.
struct DragonflyPlus {
  std::int64_t radix = 0, hosts = 0;
  std::int64_t groups = 0;
  std::int64_t hosts_per_group = 0;     // r^2 / 4
  std::int64_t leaves = 0, spines = 0;  // all groups; a last, part full group has fewer leaves
  std::int64_t leaf_spine = 0;          // links, all groups
  std::int64_t per_pair = 0;            // global links between two groups; 0 with one group
  std::int64_t global_links = 0;        // all of them, equally many for every pair
  // Switches on the longest shortest path: leaf, spine, spine, leaf between groups; 3 in one.
  int diameter = 0;
};
std::int64_t dragonfly_plus_max_groups(std::int64_t radix);  // r^2 / 4 + 1
std::int64_t dragonfly_plus_max_hosts(std::int64_t radix);   // r^4 / 16 + r^2 / 4

// Error when the radix is odd or below 4, or the hosts are more than the groups can join.
DragonflyPlus dragonfly_plus(std::int64_t radix, std::int64_t hosts);

}  // namespace orrery
