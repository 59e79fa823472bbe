// SPDX-License-Identifier: Apache-2.0
// Says how many rows the busiest rank's experts get, and how many of them get any.
#pragma once

#include <cstdint>
#include <optional>

namespace orrery {

// Tokens of all `ranks` that hold different experts, each sent to topk of them as drawn by chance.
struct ExpertRouting {
  double tokens = 0;
  std::int64_t topk = 1, ranks = 1;
  std::int64_t held = 1;  // experts of a rank, copies included
  double imbalance = 1;   // the busiest rank's expected rows over the mean
  // Standard deviation of the logarithm of how often experts are chosen, which is normal. 0: all
  // are chosen alike.
  double skew = 0;
  // Of those experts that are chosen most, where ranks are evened out by counts of earlier steps
  // (EPLB). Absent: experts lie on ranks as they are numbered.
  std::optional<std::int64_t> copies;
};

struct ExpertReach {
  double rows = 0;           // of the rank that most rows reach
  std::int64_t experts = 1;  // that some row reaches, of the rank with most of them
  double mean = 0;           // rows of a rank
};

ExpertReach reached_experts(const ExpertRouting& routing);

// What the rank that most is sent to gets over the mean rank: rows, or tokens where one that
// several experts of a rank want is sent once.
double most_sent(const ExpertReach& reach, const ExpertRouting& routing, bool once);

}  // namespace orrery
