// SPDX-License-Identifier: Apache-2.0
// Knows the nodes of one stage of a step: those of all its ranks, whose groups and peers alone
// differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units/units.h"
#include "sim/chakra/rank_groups.h"
#include "sim/chakra/trace.h"

namespace orrery {

using NodeIndex = std::uint32_t;
using NodeList = std::vector<NodeIndex>;  // what the next node waits for

struct StageNode {
  std::string name;
  TraceNodeType type = TraceNodeType::compute;
  NodeList after;
  std::uint64_t micros = 0;
  bool on_host = false;
  TraceCollective collective = TraceCollective::all_reduce;
  double bytes = 0;
  StepGroup group = StepGroup::tensor;
  bool aside = false;  // over a communicator of its own, so that it waits for no other traffic
  std::int64_t peer_stage = 0;
  std::int64_t tag = 0;
};

// Appends nodes. The format has durations in whole millionths of a second: what rounding leaves of
// one goes to the next, so that a sum of many is off by no more than one is.
class StageTrace {
 public:
  // Spans of kernels that run alone and of such that run beside a collective are rounded apart:
  // each sum counts for itself.
  enum class Span : std::uint8_t { alone, beside };

  // The node, or what it would have waited for where its duration rounds to 0.
  NodeList compute(const std::string& name, Seconds time, const NodeList& after, Span span);
  NodeList host(const std::string& name, Seconds time, const NodeList& after);
  NodeIndex add(StageNode node);

  const std::vector<StageNode>& nodes() const { return nodes_; }

 private:
  std::vector<StageNode> nodes_;
  double left_[2] = {0, 0};  // microseconds, by span
};

inline NodeList operator+(NodeList a, const NodeList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace orrery
