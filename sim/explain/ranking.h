// SPDX-License-Identifier: Apache-2.0
// Knows which values that are not facts could change the order of the best layouts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/outcome/objective.h"
#include "sim/outcome/prediction.h"

namespace orrery {

// A layout with the stack as it is under its precision.
struct Contender {
  Layout layout;
  Stack stack;
};

// How a contender stands to the first, with every value moved in both at once: what is common to
// them cancels.
struct Rival {
  double behind = 0;         // score over the first's, less one
  double low = 0, high = 0;  // 90% range of it, from the values alone
  bool may_lead() const { return low < 0; }
};

// A value at whose end another contender comes out first.
struct OrderChange {
  std::string path;        // "stack megatron-core@0.15: tensor_exposed"
  std::string value, end;  // text with units: as it is, and the end of its range
  std::size_t first = 0;   // of the contenders
  double ahead = 0;        // of the former first: its score over the new first's, less one
};

struct Ranking {
  std::vector<Rival> rivals;         // of every contender but the first
  std::vector<OrderChange> changes;  // largest `ahead` first
  std::size_t values = 0;            // that were moved
};

// Moves the values that the first contender depends on most, and those of every contender's stack,
// to both ends of their ranges and times all contenders there, on the ideal network. `ground` is
// the first contender's scenario, `prediction` what was predicted of it with its assumptions. Score
// is energy for Objective::energy, else time. Whether layouts still fit in memory is not asked.
Ranking rank_contenders(const Scenario& ground, const Prediction& prediction,
                        const std::vector<Contender>& contenders, Objective objective);

}  // namespace orrery
