// SPDX-License-Identifier: Apache-2.0
// Deals the tokens of a measured table among experts.
#include "sim/calibrate/log/skewed_experts.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace orrery {

std::int64_t active_experts(std::int64_t experts, std::int64_t tokens, std::int64_t topk,
                            bool skewed) {
  const std::int64_t routed = tokens * topk;
  if (!skewed) return std::min(experts, routed);
  const double low = routed > experts ? 1 : 0.01;
  const double high = routed > experts ? std::max(1.5, 0.8 * static_cast<double>(tokens)) : 2;
  std::vector<double> rows;  // of each expert: first its load, then its share of what is routed
  double sum = 0;
  for (std::int64_t i = 0; i < experts; ++i) {
    const double quantile = (static_cast<double>(i) + 0.5) / static_cast<double>(experts);
    rows.push_back(low * std::pow(high / low, quantile));
    sum += rows.back();
  }
  std::int64_t active = 0, given = 0;
  for (double& n : rows) {
    n = n / sum * static_cast<double>(routed);
    given += static_cast<std::int64_t>(n);
    active += n >= 1 ? 1 : 0;
  }
  // The largest remainders get a row each; those of experts without one make them active.
  std::vector<std::size_t> order(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto remainder = [&](std::size_t i) { return rows[i] - std::floor(rows[i]); };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return remainder(a) > remainder(b); });
  const auto left = static_cast<std::size_t>(std::max<std::int64_t>(0, routed - given));
  for (std::size_t i = 0; i < std::min(left, order.size()); ++i)
    active += rows[order[i]] < 1 ? 1 : 0;
  return std::max<std::int64_t>(topk, active);
}

}  // namespace orrery
