// SPDX-License-Identifier: Apache-2.0
// Scales a board's clock, and computes the expected extreme of many boards.
#include "hw_models/boards.h"

#include <cmath>
#include <numbers>

namespace orrery {

void scale_clock(ResolvedDevice& device, double factor) {
  for (FlopPerSecond& rate : device.tensor_rate) rate *= factor;
  device.vector_rate *= factor;
  device.special_function_per_second *= factor;
  device.l2_bandwidth *= factor;
  const Watts for_work = device.power_limit - device.idle_power;
  if (for_work > Watts(0)) device.power_limit = device.idle_power + for_work * factor;
}

double slowest_board(double spread, std::int64_t boards) {
  if (spread <= 0 || boards <= 1) return 1;
  // Blom's score of the extreme of n, by Newton on the normal distribution's tail.
  const double n = static_cast<double>(boards);
  const double tail = 0.625 / (n + 0.25);
  double score = std::sqrt(2 * std::log(n));
  for (int round = 0; round < 8; ++round) {
    const double density = std::exp(-score * score / 2) / std::sqrt(2 * std::numbers::pi);
    score += (std::erfc(score / std::numbers::sqrt2) / 2 - tail) / density;
  }
  return 1 - spread * score;
}

}  // namespace orrery
