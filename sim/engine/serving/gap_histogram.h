// SPDX-License-Identifier: Apache-2.0
// Counts times between tokens by size, so that any number of them takes little memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units/ticks.h"

namespace orrery {

// Bins are a thousandth wide: a percentile is right to half of that. Count, mean and the largest
// are exact, and sums of histograms are the same in any order.
class GapHistogram {
 public:
  void add(Ticks gap, std::int64_t count) { add_series(gap, Ticks{}, 1, count); }
  // gap, gap + slope, gap + 2 slope, ...: `steps` of them, each so many times. Rising, or equal.
  void add_series(Ticks gap, Ticks slope, std::int64_t steps, std::int64_t each);
  GapHistogram& operator+=(const GapHistogram& other);
  bool operator==(const GapHistogram&) const = default;

  std::int64_t count() const { return count_; }
  Seconds mean() const;                      // 0 of none
  Seconds percentile(double percent) const;  // 0 of none
  double share_within(Seconds at_most) const;
  Ticks largest() const { return largest_; }

 private:
  std::vector<std::int64_t> bins_;
  std::int64_t count_ = 0;
  __int128 sum_ = 0;
  Ticks largest_;
};

}  // namespace orrery
