// SPDX-License-Identifier: Apache-2.0
// Knows at which numbers of rows steps are priced, and what unlike ranks of a group change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "sim/engine/prices/segments.h"

namespace orrery {

using SecondsByRows = std::map<std::int64_t, double>;

const std::vector<std::int64_t>& rows_priced();

// Linear between nodes, and beyond the last as before it. `value(i)` is that of node i.
template <class Value>
double interpolated(const std::vector<std::int64_t>& nodes, double x, const Value& value) {
  const auto above = std::upper_bound(nodes.begin() + 1, nodes.end() - 1, x);
  const auto i = static_cast<std::size_t>(above - nodes.begin());
  const auto x0 = static_cast<double>(nodes[i - 1]), x1 = static_cast<double>(nodes[i]);
  const double y0 = value(i - 1);
  return y0 + (value(i) - y0) * (x - x0) / (x1 - x0);
}

// Of a table that is priced where it is first asked, in seconds; segments take one thread at a
// time.
template <class Price>
double remembered(std::recursive_mutex& mutex, SecondsByRows& table, std::int64_t n,
                  const Price& price) {
  const std::scoped_lock lock(mutex);
  const auto found = table.find(n);
  return found != table.end() ? found->second : table[n] = price(n);
}

// Ranks with attention of their own that share experts, in steps outside of graphs: what a rank's
// step takes more, or less, where others have other rows. Tables of rows take all to have as many.
class UnevenRanks {
 public:
  // Both must outlive it.
  UnevenRanks(const Segments& segments, std::recursive_mutex& mutex, std::int64_t ranks);
  double seconds(std::int64_t own, const GroupRows& group);  // 0 where each has `own`

 private:
  double exchange(std::int64_t largest);
  double experts(std::int64_t all);

  const Segments& segments_;
  std::recursive_mutex& mutex_;
  std::int64_t ranks_;
  std::vector<std::int64_t> all_priced_;  // rows of all ranks
  SecondsByRows exchanges_, experts_;
};

}  // namespace orrery
