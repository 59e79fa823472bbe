// SPDX-License-Identifier: Apache-2.0
// Knows what electricity costs and emits hour by hour.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units/units.h"

namespace orrery {

struct GridHour {
  double dollars_per_kwh = 0;  // may be below 0
  double kg_per_kwh = 0;       // CO2 equivalent, location based
};

// From the start of a run on, hour by hour.
struct GridSeries {
  std::string name;
  std::vector<GridHour> hours;
  std::vector<Watts> limits = {};  // that may be drawn then, of each hour; none: no column says
};

// Columns hour (0, 1, 2, ..), usd_per_kwh, kg_per_kwh, and perhaps limit_mw. Errors: an hour that
// is not the next one, carbon below 0, prices beyond 1,000 dollars, limits of 0 or less, no row.
GridSeries parse_grid(std::string_view csv, const std::string& file);

}  // namespace orrery
