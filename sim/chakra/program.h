// SPDX-License-Identifier: Apache-2.0
// Knows traces as a program of numbers: nodes in an order that keeps dependencies, groups resolved.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/chakra/trace.h"

namespace orrery {

// One rank's nodes. Nodes are their places in the trace.
struct RankProgram {
  std::vector<std::uint32_t> order;                 // by dependencies, else as the trace has them
  std::vector<std::uint32_t> place;                 // of a node in `order`
  std::vector<std::uint32_t> waits_for;             // how many nodes
  std::vector<std::vector<std::uint32_t>> waiting;  // nodes that wait for this one
  std::vector<std::int32_t> group;                  // of collectives, else -1
};

struct TraceProgram {
  std::vector<RankProgram> ranks;
  std::vector<std::vector<std::int64_t>> groups;  // sorted ranks
  // Collectives of a group on each of its ranks (by its place in the group), in their order.
  std::vector<std::vector<std::vector<std::uint32_t>>> collectives;
};

// Error as replay() says.
TraceProgram trace_program(const Traces& traces);

// "node 7 "AllReduce"", for messages.
std::string node_words(const TraceNode& node);

}  // namespace orrery
