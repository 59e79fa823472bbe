// SPDX-License-Identifier: Apache-2.0
// Computes percentiles, means, deviations, rank correlations and factorials.
#include "sim/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [values](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i)
      rank[order[i]] = 0.5 * static_cast<double>(first + last) + 1;
    first = last + 1;
  }
  return rank;
}

}  // namespace

double percentile(std::span<const double> values, double percent) {
  CHECK_THAT(!values.empty(), "a percentile needs at least one value");
  CHECK_THAT(percent >= 0 && percent <= 100, "percent runs from 0 to 100");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

double median(std::span<const double> values) { return percentile(values, 50); }

double mean(std::span<const double> values) {
  CHECK_THAT(!values.empty(), "a mean needs at least one value");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double sample_deviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - middle) * (v - middle);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  CHECK_THAT(a.size() == b.size(), "a rank correlation pairs two columns of one length");
  if (a.size() < 2) return 0;
  const std::vector<double> rank_a = ranks(a), rank_b = ranks(b);
  const double centre = 0.5 * static_cast<double>(a.size() + 1);
  double both = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (rank_a[i] - centre) * (rank_b[i] - centre);
    square_a += (rank_a[i] - centre) * (rank_a[i] - centre);
    square_b += (rank_b[i] - centre) * (rank_b[i] - centre);
  }
  // A column without order says nothing about the other's.
  return square_a > 0 && square_b > 0 ? both / std::sqrt(square_a * square_b) : 0;
}

double log_factorial(double n) {
  int sign = 0;
  return ::lgamma_r(n + 1, &sign);
}

}  // namespace orrery
