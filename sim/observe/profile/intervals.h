// SPDX-License-Identifier: Apache-2.0
// Knows sets of instants as sorted intervals that do not touch.
#pragma once

#include <vector>

#include "sim/observe/profile/timeline.h"

namespace orrery::observe {

struct Interval {
  Nanoseconds begin = 0, end = 0;
  Nanoseconds length() const { return end - begin; }
};
using Intervals = std::vector<Interval>;

// Sorts, and joins what touches; empty ones go away.
Intervals joined(Intervals parts);
// What lies within a window.
Intervals within(const Intervals& set, Interval window);
// What is in the first and not in the second.
Intervals without(const Intervals& set, const Intervals& taken);
Nanoseconds length_of(const Intervals& set);

}  // namespace orrery::observe
