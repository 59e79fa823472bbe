// SPDX-License-Identifier: Apache-2.0
// Says how many rows the busiest rank's experts get, and how many of them get any.
#pragma once

#include <cstdint>

namespace orrery {

// Tokens of all `ranks` that hold different experts, each sent to topk of them as drawn by chance.
struct ExpertRouting {
  double tokens = 0;
  std::int64_t topk = 1, ranks = 1;
  std::int64_t held = 1;  // experts of a rank, copies included
  double imbalance = 1;   // the busiest rank's expected rows over the mean
  // How often the most popular expert of a rank is chosen over the least; between them the
  // logarithms lie evenly. 1: all alike.
  double popularity = 1;
};

struct ExpertReach {
  double rows = 0;           // of the rank that most rows reach
  std::int64_t experts = 1;  // of it that some row reaches
};

ExpertReach reached_experts(const ExpertRouting& routing);

}  // namespace orrery
