// SPDX-License-Identifier: Apache-2.0
// Knows ECMP: how queue pairs are hashed onto uplinks, and how unevenly they fall.
#include "topologies/routing/hashing.h"

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/base/statistics.h"
#include "topologies/routing/routing.h"

namespace orrery {
namespace {

// P(X = x) for `parts` hashed onto `links`.
double binomial(std::int64_t parts, std::int64_t links, std::int64_t x) {
  if (x < 0 || x > parts) return 0;
  if (links == 1) return x == parts ? 1 : 0;
  const auto n = static_cast<double>(parts), k = static_cast<double>(x);
  const auto u = static_cast<double>(links);
  return std::exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k) - k * std::log(u) +
                  (n - k) * std::log1p(-1 / u));
}

// E[max(least, M)] in parts: least, and the chance of every load above it.
double worst_parts(std::int64_t parts, std::int64_t links, double loads, std::int64_t least) {
  auto expected = static_cast<double>(least);
  double at_most = 0;
  for (std::int64_t x = 0; x < parts; ++x) {
    at_most = std::min(1.0, at_most + binomial(parts, links, x));
    if (x >= least) expected += -std::expm1(loads * std::log(at_most));
  }
  return expected;
}

void check_counts(std::int64_t flows, std::int64_t uplinks, std::int64_t pairs,
                  std::int64_t leaves) {
  CHECK_THAT(flows >= 1 && uplinks >= 1 && pairs >= 1 && leaves >= 1, "counts of at least one");
}

}  // namespace

double ecmp_worst_load(std::int64_t flows, std::int64_t uplinks, std::int64_t queue_pairs,
                       std::int64_t leaves) {
  check_counts(flows, uplinks, queue_pairs, leaves);
  const double loads = 2.0 * static_cast<double>(uplinks) * static_cast<double>(leaves);
  return worst_parts(flows * queue_pairs, uplinks, loads, 0) / static_cast<double>(queue_pairs);
}

double ecmp_share(std::int64_t flows, std::int64_t uplinks, std::int64_t queue_pairs,
                  std::int64_t leaves) {
  check_counts(flows, uplinks, queue_pairs, leaves);
  const double loads = 2.0 * static_cast<double>(uplinks) * static_cast<double>(leaves);
  const double pairs = static_cast<double>(queue_pairs);
  const double worst = worst_parts(flows * queue_pairs, uplinks, loads, queue_pairs) / pairs;
  return std::max(1.0, static_cast<double>(flows) / static_cast<double>(uplinks)) / worst;
}

double ecmp_worst_met(double own, double others, std::int64_t uplinks, std::int64_t leaves) {
  const std::int64_t mine = std::llround(own), rest = std::llround(others);
  CHECK_THAT(mine >= 1 && rest >= 0 && uplinks >= 1 && leaves >= 1, "counts of at least one");
  const double loads = 2.0 * static_cast<double>(uplinks) * static_cast<double>(leaves);
  const double none = binomial(mine, uplinks, 0);
  double expected = 0, all_at_most = 0, rest_at_most = 0;
  for (std::int64_t x = 0; x < mine + rest; ++x) {
    all_at_most = std::min(1.0, all_at_most + binomial(mine + rest, uplinks, x));
    rest_at_most = std::min(1.0, rest_at_most + binomial(rest, uplinks, x));
    const double above = std::max(0.0, 1 - all_at_most - none * (1 - rest_at_most));
    expected += -std::expm1(loads * std::log1p(-std::min(above, 1.0)));
  }
  return expected;
}

EcmpAverage ecmp_average_share(std::int64_t flows, std::int64_t uplinks, std::int64_t queue_pairs) {
  check_counts(flows, uplinks, queue_pairs, 1);
  const std::int64_t parts = flows * queue_pairs;
  const double pairs = static_cast<double>(queue_pairs);
  const double spread = std::min(1.0, static_cast<double>(uplinks) / static_cast<double>(flows));
  // A part meets the others on its link: one more than a load of one part less.
  double low = 0, high = 0, at_most = 0;
  for (std::int64_t x = 0; x <= parts; ++x) {
    high += binomial(parts, uplinks, x) * std::min(1.0, static_cast<double>(x) / pairs);
    const double below = at_most * at_most;
    at_most = std::min(1.0, at_most + binomial(parts - 1, uplinks, x));
    low += (at_most * at_most - below) * std::min(1.0, pairs / static_cast<double>(x + 1));
  }
  const double mean = static_cast<double>(flows) / static_cast<double>(uplinks);
  return {.low = low / spread, .high = high / std::min(1.0, mean)};
}

}  // namespace orrery
