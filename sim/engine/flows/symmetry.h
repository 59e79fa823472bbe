// SPDX-License-Identifier: Apache-2.0
// Knows which flows and links nothing tells apart: exact folding by colour refinement.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/flows/flows.h"

namespace orrery {

// The coarsest partition in which flows of a class have equal bytes, cap, priority, colour and sets
// of link classes, and links of a class equal capacity, colour and exact weight from every flow
// class. Links of a class then saturate at the same level, so the quotient's rates are those of the
// whole table, to the bit (law 5). Signatures are hashed and verified. Near linear in the uses: a
// round looks only at neighbours of what the round before split off.
//
// Why this is exact. Let whole flow classes run or not run. Say that up to some level of the
// filling (sim/engine/flows/solver) all flows of a class are fixed alike and all links of a class
// have equal residuals. Then they have equal unfixed weights too, exactly, since every link of a
// class takes the same whole number of weight units from every flow class; so they saturate at the
// same level to the bit, and a flow, which is fixed as soon as any of its links saturates, is fixed
// at the level at which the first class of its SET of link classes does: how many links of a class
// it uses, and with which weights, does not matter. So rates are equal in a class. Bytes are equal
// too, and settle only when rates change, so all flows of a class end in the same picosecond, and
// what runs after that is again a union of classes. A link's weight from a class does not depend on
// what else runs, so one partition of the whole table serves every instant.
//
// The caller's part: what starts and stops by itself (each collective, each job) has a colour of
// its own among flows, what changes its capacity by itself has one among links, and sizes given to
// FlowClock::start are equal within a class.
struct Folded {
  FlowTable table;                        // one entry per class, counts added up
  std::vector<FlowIndex> flow_class;      // of every flow of the original
  std::vector<LinkIndex> link_class;      // of every link
  std::vector<FlowIndex> representative;  // of every flow class, in the original: the first
  int rounds = 0;                         // of refinement, the last of which split nothing
  // What classes have, for every flow.
  std::vector<double> of_flows(const std::vector<double>& of_classes) const {
    std::vector<double> all;
    all.reserve(flow_class.size());
    for (const FlowIndex c : flow_class) all.push_back(of_classes[c]);
    return all;
  }
};
// Classes are numbered by their first members. A class's uses come in ascending order of link.
// Aborts when a weight is no multiple of 2^-30, or sums of weights pass 2^22.
Folded fold(const FlowTable& table);

// Whether `folded` says of every flow and link of `table` what is true of it: without hashes, so
// that fold() can trust its signatures.
bool is_quotient(const FlowTable& table, const Folded& folded);

}  // namespace orrery
