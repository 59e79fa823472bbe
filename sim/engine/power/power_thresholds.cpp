// SPDX-License-Identifier: Apache-2.0
// Goes from step to step, down first.
#include "sim/engine/power/power_thresholds.h"

namespace orrery {
namespace {

std::int64_t part_of(std::int64_t limit, double share) {
  return static_cast<std::int64_t>(static_cast<double>(limit) * share);
}

}  // namespace

std::int64_t threshold_level(const PowerThresholds& rules, std::int32_t rank, ThresholdStep step) {
  if (rank > 0) return step == ThresholdStep::all ? rules.high : cap_steps;
  if (step == ThresholdStep::none) return cap_steps;
  return step == ThresholdStep::low ? rules.low : rules.lower;
}

ThresholdStep next_step(const PowerThresholds& rules, ThresholdStep now, std::int64_t limit,
                        const std::function<std::int64_t(ThresholdStep)>& drawn) {
  using enum ThresholdStep;
  const std::int64_t first = part_of(limit, rules.first), second = part_of(limit, rules.second);
  const std::int64_t first_over = part_of(limit, rules.first - rules.release);
  const std::int64_t second_over = part_of(limit, rules.second - rules.release);
  ThresholdStep step = now;
  if (step < lower && drawn(step) > second) step = lower;
  if (step == none && drawn(step) > first) step = low;
  if (step == lower && drawn(step) > second) step = all;
  if (step == all && drawn(all) <= second_over && drawn(lower) <= second) step = lower;
  if (step == lower && drawn(lower) <= second_over && drawn(low) <= second) step = low;
  if (step == low && drawn(low) <= first_over && drawn(none) <= first) step = none;
  return step;
}

}  // namespace orrery
