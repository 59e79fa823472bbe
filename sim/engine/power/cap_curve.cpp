// SPDX-License-Identifier: Apache-2.0
// Lays levels of a cap on straight lines between points.
#include "sim/engine/power/cap_curve.h"

#include <algorithm>
#include <cmath>

namespace orrery {

CapCurve cap_curve(const std::vector<CapPoint>& points, double host_watts) {
  const double low = points.front().watts, high = points.back().watts;
  const double alone = points.back().step;
  CapCurve curve;
  std::size_t at = points.size() - 1;
  for (int i = cap_steps; i >= 0; --i) {
    const double watts = low + (high - low) * i / cap_steps;
    while (at > 1 && points[at - 1].watts >= watts) --at;
    const CapPoint &a = points[at - 1], &b = points[at];
    const double part = std::clamp((watts - a.watts) / (b.watts - a.watts), 0.0, 1.0);
    const auto level = static_cast<std::size_t>(i);
    CapLevel& here = curve[level];
    here.milliwatts = std::llround(1e3 * (a.drawn + (b.drawn - a.drawn) * part + host_watts));
    here.slower = std::max(1.0, (a.step + (b.step - a.step) * part) / alone);
    if (i == cap_steps) {
      here = {std::llround(1e3 * (b.drawn + host_watts)), 1};
      continue;
    }
    here.milliwatts = std::min(here.milliwatts, curve[level + 1].milliwatts);
    here.slower = std::max(here.slower, curve[level + 1].slower);
  }
  return curve;
}

}  // namespace orrery
