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

}  // namespace

ExpertReach reached_experts(const ExpertRouting& r) {
  const auto ranks = static_cast<double>(r.ranks), held = static_cast<double>(r.held);
  const double mean = r.tokens * static_cast<double>(r.topk) / ranks * r.imbalance;
  const double most = r.tokens * static_cast<double>(std::min(r.topk, r.held));
  const double spread = std::sqrt(mean * (1 - 1 / ranks));
  const double rows = std::min(most, mean + expected_largest(r.ranks) * spread);
  const double reached = held * (1 - std::pow(1 - 1 / held, rows));
  return {.rows = rows, .experts = std::clamp<std::int64_t>(std::llround(reached), 1, r.held)};
}

}  // namespace orrery
