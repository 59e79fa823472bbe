// SPDX-License-Identifier: Apache-2.0
// Counts the rounds for which a decision holds, and orders jobs in between.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/engine/elastic/round_policy.h"

namespace orrery {

class RoundSlices {
 public:
  // Whether a slice of so many rounds begins with this round.
  bool next(std::int32_t rounds);

 private:
  std::int32_t left_ = 0;
};

// Jobs of a view by `before`, of equals the older first. Unless a slice `begins`, those that
// hold a place come first.
std::vector<std::size_t> slice_order(const RoundView& view, bool begins,
                                     const std::function<bool(std::size_t, std::size_t)>& before);

}  // namespace orrery
