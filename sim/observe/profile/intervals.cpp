// SPDX-License-Identifier: Apache-2.0
// Joins, cuts and subtracts intervals in one pass over sorted lists.
#include "sim/observe/profile/intervals.h"

#include <algorithm>

namespace orrery::observe {

Intervals joined(Intervals parts) {
  const auto before = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  if (!std::is_sorted(parts.begin(), parts.end(), before))
    std::sort(parts.begin(), parts.end(), before);
  Intervals set;
  for (const Interval& part : parts) {
    if (part.end <= part.begin) continue;
    if (!set.empty() && part.begin <= set.back().end)
      set.back().end = std::max(set.back().end, part.end);
    else
      set.push_back(part);
  }
  return set;
}

Intervals within(const Intervals& set, Interval window) {
  Intervals cut;
  auto at = std::partition_point(set.begin(), set.end(),
                                 [&](const Interval& one) { return one.end <= window.begin; });
  for (; at != set.end() && at->begin < window.end; ++at)
    cut.push_back({std::max(at->begin, window.begin), std::min(at->end, window.end)});
  return cut;
}

Intervals without(const Intervals& set, const Intervals& taken) {
  Intervals left;
  std::size_t next = 0;
  for (Interval rest : set) {
    while (next < taken.size() && taken[next].end <= rest.begin) ++next;
    for (std::size_t i = next; i < taken.size() && taken[i].begin < rest.end; ++i) {
      if (taken[i].begin > rest.begin) left.push_back({rest.begin, taken[i].begin});
      rest.begin = std::max(rest.begin, taken[i].end);
      if (rest.begin >= rest.end) break;
    }
    if (rest.begin < rest.end) left.push_back(rest);
  }
  return left;
}

Nanoseconds length_of(const Intervals& set) {
  Nanoseconds total = 0;
  for (const Interval& one : set) total += one.length();
  return total;
}

}  // namespace orrery::observe
