// SPDX-License-Identifier: Apache-2.0
// Finds what gradient buckets and the last backward passes of a stage cost each other.
#pragma once

#include <optional>
#include <vector>

#include "sim/engine/step/chunks.h"
#include "sim/engine/step/ending.h"

namespace orrery {

// What both wait for each other.
struct Delays {
  Seconds passes, gradients;
};

// On the flow network, layer by layer. Simulated once for each distinct chunk.
class GradientContention {
 public:
  // Both must outlive it.
  GradientContention(const PricedStep& step, const Ending& ending) : step_(step), ending_(ending) {}
  // Nothing on the ideal network, and where nothing overlaps.
  Delays of(std::int64_t stage);

 private:
  const PricedStep& step_;
  const Ending& ending_;
  std::vector<std::optional<Delays>> of_chunk_;  // of distinct chunks, as they are asked for
};

}  // namespace orrery
