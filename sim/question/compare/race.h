// SPDX-License-Identifier: Apache-2.0
// Knows how sure it is that one of several points is the best, from runs with the same seeds.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

// A mean over seeds, with the ends of its 90% interval (Student's t).
struct SeedMean {
  double mean = 0, low = 0, high = 0;
};
SeedMean mean_over_seeds(const std::vector<double>& values);

// For each point the chance that its mean is the least of all: `values[point][seed]`, all with the
// same seeds in the same order, at least two. Seeds are weighed at random, again and again (the
// Bayesian bootstrap, Rubin 1981), so that what points have in common with a seed cancels; few
// seeds are made up for by the spread that Student's t has over them. The same on any machine.
std::vector<double> chances_of_least(const std::vector<std::vector<double>>& values,
                                     std::uint64_t seed);

}  // namespace orrery
