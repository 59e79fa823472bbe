// SPDX-License-Identifier: Apache-2.0
// Rounds durations of nodes to microseconds and keeps what is left.
#include "sim/chakra/stage_trace.h"

#include <algorithm>
#include <cmath>

namespace orrery {

NodeIndex StageTrace::add(StageNode node) {
  std::sort(node.after.begin(), node.after.end());
  node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
  nodes_.push_back(std::move(node));
  return static_cast<NodeIndex>(nodes_.size() - 1);
}

NodeList StageTrace::compute(const std::string& name, Seconds time, const NodeList& after,
                             Span span) {
  double& left = left_[static_cast<std::size_t>(span)];
  const double exact = in_microseconds(time) + left;
  const double whole = std::max(0.0, std::round(exact));
  left = exact - whole;
  if (whole == 0) return after;
  return {add({.name = name, .after = after, .micros = static_cast<std::uint64_t>(whole)})};
}

NodeList StageTrace::host(const std::string& name, Seconds time, const NodeList& after) {
  const double whole = std::round(in_microseconds(time));
  if (whole < 1) return after;
  return {add({.name = name,
               .after = after,
               .micros = static_cast<std::uint64_t>(whole),
               .on_host = true})};
}

}  // namespace orrery
