// SPDX-License-Identifier: Apache-2.0
// Computes the statistics that reports and fits use.
#pragma once

#include <span>

namespace orrery {

// Standard deviations of a normal distribution between its middle and its 95% point: nine tenths
// of it lie within as many on both sides.
inline constexpr double normal_95 = 1.6448536;
// Standard deviation over median absolute deviation, of a normal distribution.
inline constexpr double deviation_of_mad = 1.4826;

// Linear-interpolated percentile (0 to 100) of unsorted values; NaN-free input of at least one.
double percentile(std::span<const double> values, double percent);
double median(std::span<const double> values);
double mean(std::span<const double> values);
// Standard deviation of the population that these are a sample of; 0 for fewer than two.
double sample_deviation(std::span<const double> values);
// Spearman rank correlation with mean ranks for ties; 0 for fewer than two values.
double rank_correlation(std::span<const double> a, std::span<const double> b);
// ln n! of n from 0 on. std::lgamma writes a global, which threads must not share.
double log_factorial(double n);

}  // namespace orrery
