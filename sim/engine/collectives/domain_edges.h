// SPDX-License-Identifier: Apache-2.0
// Knows which scale-up domains send to which while all groups of a kind run one collective.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/names.h"
#include "sim/engine/placement.h"

namespace orrery {

// Every rank of domain `from` sends to the rank in its own position of domain `to`: collectives
// are rail-aligned (NCCL's rings and PXN, DeepEP), a message for another position changes rails
// over the scale-up links.
struct DomainEdge {
  std::int64_t from = 0, to = 0;
  double share = 1;  // of a busiest rank's scale_out_bytes
};

// The domains of one group: member j is domain first + j * step.
struct DomainGroup {
  std::int64_t first = 0, step = 1, count = 0;
  std::int64_t at(std::int64_t j) const { return first + j * step; }
};
std::vector<DomainGroup> domain_groups(const GroupShape& group, std::int64_t domains);

// `domains`: the job's, numbered in rank order. Groups lie as GroupShape says: blocks of
// group.domains * group.domain_step domains, one group at each offset below domain_step; a last,
// shorter block keeps what it has. Sends go from every domain to the one domain_step further on.
//   ring, hierarchical, broadcast: to the next domain of the group's ring
//   tree, nvls-tree: up and down both trees of the double binary tree
//   pat: to the domains 1, 2, 4, ... further on, in proportion to what each step carries
//   direct all-to-all, deepep: to every other domain, equally. Beyond `most_peers` peers, that many
//   of the shifts between ring positions, drawn by `seed`, stand for all (0: never sampled).
// collnet has no edges between domains: switches reduce.
struct EdgeOptions {
  std::int64_t most_peers = 128;
  std::uint64_t seed = 1;
};
std::vector<DomainEdge> domain_edges(CollectiveKind kind, CollectiveAlgorithm algorithm,
                                     const GroupShape& group, std::int64_t domains,
                                     const EdgeOptions& options = {});

// Parent of node `node` in the binary tree over 0 .. nodes - 1 whose root is 0 and in which the
// nodes divisible by 2^h, but by no higher power, stand h levels above the odd ones; -1 for 0.
std::int64_t tree_parent(std::int64_t node, std::int64_t nodes);

// Copies of half the buffer that the busiest node of a double binary tree sends, both trees, up and
// down (Sanders, Speck, Traff 2009): node v of the second tree is node - 1 - v of the first, or v
// shifted by one for odd sizes. A node with two children in one tree is a leaf in the other: it
// sends two halves down and one up there and one up here; so 4 from four nodes on, else their
// number.
double double_tree_copies(std::int64_t nodes);

}  // namespace orrery
