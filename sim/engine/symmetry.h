// Knows which flows and links nothing tells apart: exact folding by colour refinement.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/flows.h"

namespace orrery {

// The coarsest partition in which flows of a class have equal bytes, cap, priority, colour and sets
// of link classes, and links of a class equal capacity, colour and exact weight from every flow
// class. Links of a class then saturate at the same level, so the quotient's rates are those of the
// whole table, to the bit (law 5). Signatures are hashed and verified. Linear in the uses per
// round.
struct Folded {
  FlowTable table;                        // one entry per class, counts added up
  std::vector<FlowIndex> flow_class;      // of every flow of the original
  std::vector<LinkIndex> link_class;      // of every link
  std::vector<FlowIndex> representative;  // of every flow class, in the original
  int rounds = 0;
};
Folded fold(const FlowTable& table);

}  // namespace orrery
