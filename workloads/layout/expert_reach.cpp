// SPDX-License-Identifier: Apache-2.0
// Computes which experts rows reach when routing is drawn by chance.
#include "workloads/layout/expert_reach.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>

namespace orrery {
namespace {

// The expected largest of `n` independent standard normal numbers (Blom, Statistical Estimates and
// Transformed Beta-Variables, 1958); 0 for one.
double expected_largest(std::int64_t n) {
  const auto ranks = static_cast<double>(n);
  return std::sqrt(2.0) * boost::math::erf_inv(2 * (ranks - 0.375) / (ranks + 0.25) - 1);
}

// The share of a rank's experts that none of `rows` reaches.
double missed(const ExpertRouting& r, double rows) {
  const auto held = static_cast<double>(r.held);
  if (r.popularity <= 1) return std::pow(1 - 1 / held, rows);
  constexpr int quantiles = 32;
  const double mean = (r.popularity - 1) / std::log(r.popularity);  // over the least popular
  double sum = 0;
  for (int i = 0; i < quantiles; ++i) {
    const double chance = std::pow(r.popularity, (i + 0.5) / quantiles) / mean / held;
    sum += std::pow(1 - std::min(1.0, chance), rows);
  }
  return sum / quantiles;
}

// The variance of how often experts are chosen, over the square of its mean.
double variance_of_popularity(double popularity) {
  if (popularity <= 1) return 0;
  return std::log(popularity) * (popularity + 1) / (2 * (popularity - 1)) - 1;
}

}  // namespace

ExpertReach reached_experts(const ExpertRouting& r) {
  const auto ranks = static_cast<double>(r.ranks), held = static_cast<double>(r.held);
  const double mean = r.tokens * static_cast<double>(r.topk) / ranks * r.imbalance;
  const double most = r.tokens * static_cast<double>(std::min(r.topk, r.held));
  // Rows are drawn by chance, and so are the experts that a rank holds.
  const double variance = mean + mean * mean * variance_of_popularity(r.popularity) / held;
  const double spread = std::sqrt(variance * (1 - 1 / ranks));
  const double rows = std::min(most, mean + expected_largest(r.ranks) * spread);
  const double reached = held * (1 - missed(r, rows));
  return {.rows = rows, .experts = std::clamp<std::int64_t>(std::llround(reached), 1, r.held)};
}

}  // namespace orrery
