// SPDX-License-Identifier: Apache-2.0
// Knows what a controller with two thresholds does to clocks: POLCA (Patel et al., ASPLOS 2024).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/base/units/fleet_time.h"
#include "sim/engine/power/cap_curve.h"

namespace orrery {

// How far clocks are down below one limit. low: those of jobs of low priority, to their first
// clock. lower: to their second one. all: those of high priority as well.
enum class ThresholdStep : std::uint8_t { none, low, lower, all };

// Shares of a limit, and levels of caps at which jobs have the clocks of the controller.
struct PowerThresholds {
  double first = 1, second = 1;  // above it clocks fall; first <= second <= 1
  double release = 0;            // so far below a threshold they rise again
  std::int64_t low = cap_steps, lower = cap_steps, high = cap_steps;
  // Jobs of this priority or a higher one are those of high priority. None: the highest of all that
  // can be capped (FleetState).
  std::optional<std::int32_t> high_from = {};
};

// For so long clocks were so far down.
struct ThresholdTimes {
  FleetTime low, lower, all;
  void add(ThresholdStep step, FleetTime passed) {
    if (step == ThresholdStep::low) low += passed;
    if (step == ThresholdStep::lower) lower += passed;
    if (step == ThresholdStep::all) all += passed;
  }
};

// 1: of high priority, 0: of low.
inline std::int32_t threshold_rank(const PowerThresholds& rules, std::int32_t priority) {
  return priority >= rules.high_from.value_or(0) ? 1 : 0;
}

// The level of caps of a rank.
std::int64_t threshold_level(const PowerThresholds& rules, std::int32_t rank, ThresholdStep step);

// The step after `now`, at once: what is drawn at a step is known, and falls from step to step.
// Clocks rise only where the threshold above which they fell is kept then: they would fall again.
// Whoever starts is admitted at the last step, so that a limit that stays is kept.
ThresholdStep next_step(const PowerThresholds& rules, ThresholdStep now, std::int64_t limit,
                        const std::function<std::int64_t(ThresholdStep)>& drawn);

}  // namespace orrery
