// SPDX-License-Identifier: Apache-2.0
// Judges whether a deployment bears a load, and finds the smallest that does.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/question/serve/serve.h"

namespace orrery {

Hertz load_rate(const Arrivals& arrivals);

// Takes more requests where the second half of the arrivals is shorter than two requests take;
// false: it is long enough, or there are 200,000 of them.
bool lengthen(ServedPoint& point);

// In the second half of the arrivals: as many end as arrive, but for 2% and three deviations of how
// many are in the system (those of Poisson's law, times the variation of the gaps).
LoadResult judge(const ServedPoint& point);

// Of the points that meet their load the one with the least GPUs; of several the one whose requests
// take the least time.
std::optional<std::size_t> least_that_meets(const std::vector<ServedPoint>& points);

}  // namespace orrery
