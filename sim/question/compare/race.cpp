// SPDX-License-Identifier: Apache-2.0
// Weighs seeds at random.
#include "sim/question/compare/race.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "sim/base/random.h"

namespace orrery {
namespace {

constexpr int draws = 4000;

}  // namespace

SeedMean mean_over_seeds(const std::vector<double>& values) {
  SeedMean out;
  if (values.empty()) return out;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) out.mean += v / n;
  out.low = out.high = out.mean;
  if (values.size() < 2) return out;
  double square = 0;
  for (const double v : values) square += (v - out.mean) * (v - out.mean);
  const boost::math::students_t student(n - 1);
  const double half = boost::math::quantile(student, 0.95) * std::sqrt(square / (n - 1) / n);
  out.low -= half;
  out.high += half;
  return out;
}

std::vector<double> chances_of_least(const std::vector<std::vector<double>>& values,
                                     std::uint64_t seed) {
  const std::size_t points = values.size(), seeds = values.front().size();
  const auto n = static_cast<double>(seeds);
  RandomStream random(seed, 0);
  std::vector<std::size_t> least;
  std::vector<double> means(points), weights(seeds), chances(points, 0.0);
  for (std::size_t p = 0; p < points; ++p)
    for (const double v : values[p]) means[p] += v / n;
  for (int draw = 0; draw < draws; ++draw) {
    double sum = 0;
    for (double& weight : weights) sum += weight = random.exponential(1);
    // Deviations of a bootstrap are those of a normal mean with n in place of n - 1, and a mean of
    // few has a wider spread than a normal one: a chi-squared draw makes both up.
    double square = 0;
    for (std::size_t i = 0; i + 1 < seeds; ++i) {
      const double z = random.normal(0, 1);
      square += z * z;
    }
    const double wider = std::sqrt((n + 1) / std::max(square, 1e-9));
    least.clear();
    double best = 0;
    for (std::size_t p = 0; p < points; ++p) {
      double mean = 0;
      for (std::size_t i = 0; i < seeds; ++i) mean += weights[i] / sum * values[p][i];
      mean = means[p] + wider * (mean - means[p]);
      if (least.empty() || mean < best) least.clear();
      if (least.empty() || mean == best) least.push_back(p);
      best = least.front() == p ? mean : best;
    }
    // Points that are alike share it.
    for (const std::size_t p : least) chances[p] += 1.0 / draws / static_cast<double>(least.size());
  }
  return chances;
}

}  // namespace orrery
