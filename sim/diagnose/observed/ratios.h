// SPDX-License-Identifier: Apache-2.0
// Knows how much slower the middle one of many collectives was than predicted.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace orrery {

// Collectives of fewer bytes are bound by latency, and tell little of links.
inline constexpr double large_collective = 1e6;

// Times of calls over the predicted, by the predicted seconds that they stand for.
class Ratios {
 public:
  void add(double ratio, double seconds) {
    all_.emplace_back(ratio, seconds);
    seconds_ += seconds;
  }
  // Half of the seconds were slower: one call says little where calls differ, as on links that
  // others use or that send again.
  std::optional<double> middle() {
    if (all_.empty()) return std::nullopt;
    std::sort(all_.begin(), all_.end());
    double before = 0;
    for (const auto& [ratio, seconds] : all_)
      if ((before += seconds) >= seconds_ / 2) return ratio;
    return all_.back().first;
  }

 private:
  std::vector<std::pair<double, double>> all_;
  double seconds_ = 0;
};

}  // namespace orrery
