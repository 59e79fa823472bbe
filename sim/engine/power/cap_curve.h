// SPDX-License-Identifier: Apache-2.0
// Knows what a power cap does to work of one kind: what it draws, and how much longer it takes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace orrery {

struct CapLevel {
  std::int64_t milliwatts = 0;  // of an accelerator and its share of a host, in the mean of a step
  double slower = 1;            // steps over those without a cap
};

// Caps stand at so many equal parts of the range from a device's least cap to its limit.
inline constexpr int cap_steps = 50;

// Level 0 is the least cap, level cap_steps none. Ascending in what is drawn, descending in what it
// takes.
using CapCurve = std::array<CapLevel, cap_steps + 1>;

// The highest level that fits; 0 is taken to. Whatever fits at a level fits at lower ones.
template <class Fits>
std::int64_t highest_cap_level(const Fits& fits) {
  std::int64_t low = 0, high = cap_steps;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// What was found at some caps.
struct CapPoint {
  double watts = 0;  // the cap, of an accelerator
  double drawn = 0;  // watts of an accelerator, in the mean
  double step = 0;   // what a step takes, in any unit
};

// Straight lines between points, which ascend in watts; at least two. `host_watts` come on top of
// what is drawn. A step takes ever longer for each watt that is taken from it, so that lines lie
// above it: a cap never costs less than its points say. Where points fall by rounding, nothing
// does.
CapCurve cap_curve(const std::vector<CapPoint>& points, double host_watts);

}  // namespace orrery
