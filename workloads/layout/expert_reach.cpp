// SPDX-License-Identifier: Apache-2.0
// Computes which experts rows reach when routing is drawn by chance.
#include "workloads/layout/expert_reach.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <vector>

namespace orrery {
namespace {

// By how much ranks that were evened out differ still, beyond what rows drawn by chance explain:
// loads change after they were counted. 52 and 54 rows of 1,024 in DeepSeek-R1's layers, of which
// chance explains 32 (TensorRT-LLM, Scaling Expert Parallelism, part 1, table 1).
constexpr double uneven_ranks = 0.041;

double normal_quantile(double p) { return std::sqrt(2.0) * boost::math::erf_inv(2 * p - 1); }

// The expected largest of `n` independent standard normal numbers (Blom, Statistical Estimates and
// Transformed Beta-Variables, 1958); 0 for one.
double expected_largest(std::int64_t n) {
  const auto ranks = static_cast<double>(n);
  return normal_quantile((ranks - 0.375) / (ranks + 0.25));
}

// Normal numbers at the middles of `n` equal parts of their distribution.
std::vector<double> normal_numbers(std::int64_t n) {
  std::vector<double> z;
  for (std::int64_t i = 0; i < n; ++i)
    z.push_back(normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(n)));
  return z;
}

// How often places are chosen, over their mean: an expert's, or a copy's of it.
std::vector<double> popularity(const ExpertRouting& r) {
  if (r.skew <= 0) return {1.0};
  constexpr std::int64_t enough = 64;
  static const std::vector<double> usual = normal_numbers(enough);
  const std::int64_t places = r.held * r.ranks;
  const std::int64_t copies = std::clamp<std::int64_t>(r.copies.value_or(0), 0, places - 1);
  std::vector<double> chosen = r.copies ? normal_numbers(places - copies) : usual;
  for (double& c : chosen) c = std::exp(r.skew * c);
  // Each copy is one of the expert whose places are chosen most (DeepSeek's EPLB).
  std::vector<double> shared = chosen;
  std::vector<std::int64_t> of(chosen.size(), 1);
  for (std::int64_t i = 0; i < copies; ++i) {
    const auto most = static_cast<std::size_t>(
        std::distance(shared.begin(), std::max_element(shared.begin(), shared.end())));
    shared[most] = chosen[most] / static_cast<double>(++of[most]);
  }
  std::vector<double> all;
  double sum = 0;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    all.insert(all.end(), static_cast<std::size_t>(of[i]), shared[i]);
    sum += shared[i] * static_cast<double>(of[i]);
  }
  for (double& c : all) c *= static_cast<double>(all.size()) / sum;
  return all;
}

// The share of experts that some of a rank's `rows` reaches.
double reached_share(const ExpertRouting& r, const std::vector<double>& chosen, double rows) {
  const auto held = static_cast<double>(r.held);
  double missed = 0;
  for (const double c : chosen) missed += std::pow(1 - std::min(1.0, c / held), rows);
  return 1 - missed / static_cast<double>(chosen.size());
}

// Rows of the busiest rank over the mean. The experts that a rank holds are drawn by chance: sums
// of few log-normal numbers are log-normal nearly (Fenton, IRE Transactions on Communications
// Systems 8, 1960). So are rows, which are Poisson's (Cornish and Fisher, 1938, to the skewness).
double busiest(const ExpertRouting& r, const std::vector<double>& chosen, double mean) {
  const auto ranks = static_cast<double>(r.ranks), held = static_cast<double>(r.held);
  const double largest = expected_largest(r.ranks), others = 1 - 1 / ranks;
  const double by_chance =
      std::sqrt(others / mean) * (largest + (largest * largest - 1) / (6 * std::sqrt(mean)));
  const auto more = [&](double by_experts) {
    return 1 + std::hypot(std::max(0.0, by_chance), std::max(0.0, by_experts));
  };
  if (r.copies) {
    // No rank is less busy than its busiest expert.
    const double hottest = *std::max_element(chosen.begin(), chosen.end()) / held;
    return std::max(hottest, more(largest * uneven_ranks));
  }
  const double spread = std::sqrt(std::log1p(others * std::expm1(r.skew * r.skew) / held));
  return more(std::exp(largest * spread - spread * spread / 2) - 1);
}

}  // namespace

ExpertReach reached_experts(const ExpertRouting& r) {
  const auto ranks = static_cast<double>(r.ranks), held = static_cast<double>(r.held);
  const double mean = r.tokens * static_cast<double>(r.topk) / ranks * r.imbalance;
  const double most = r.tokens * static_cast<double>(std::min(r.topk, r.held));
  const std::vector<double> chosen = popularity(r);
  const double share = reached_share(r, chosen, mean);
  const double reached = held * share + expected_largest(r.ranks) *
                                            std::sqrt(held * share * (1 - share) * (1 - 1 / ranks));
  return {.rows = std::min(most, mean * busiest(r, chosen, mean)),
          .experts = std::clamp<std::int64_t>(std::llround(reached), 1, r.held),
          .mean = mean};
}

double most_sent(const ExpertReach& reach, const ExpertRouting& r, bool once) {
  const double rows = reach.rows / reach.mean;
  if (!once) return rows;
  const auto sent = [&](double share) {
    const double choice = std::min(1.0, share / static_cast<double>(r.ranks));
    return 1 - std::pow(1 - choice, static_cast<double>(r.topk));
  };
  return sent(rows) / sent(1);
}

}  // namespace orrery
