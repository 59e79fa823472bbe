// SPDX-License-Identifier: Apache-2.0
// Knows the least cut of a tiered network between the first and the last of its accelerators.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

// A node of the network seen as a tree: where every switch below has equal links to every switch
// above, the switches of a group act as one node, and capacities add up (all of them lie on the
// same side of a least cut, or every choice costs the same).
struct CutLevel {
  std::int64_t reach = 0;  // accelerators under a full node
  double up = 0;           // capacity of a node's links to the next level
};

// The least capacity that separates accelerators [0, first) from [first, accelerators). Each
// accelerator is joined to its node by `nic`; nodes of the last level meet in one root, or, with
// `pairwise` above 0, each pair of them has that capacity (dragonfly, sites). O(levels^2).
double least_cut(double nic, const std::vector<CutLevel>& levels, std::int64_t accelerators,
                 std::int64_t first, double pairwise = 0);

}  // namespace orrery
