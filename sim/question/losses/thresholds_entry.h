// SPDX-License-Identifier: Apache-2.0
// Reads the thresholds and clocks of a controller of power.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/json/json.h"
#include "sim/engine/power/power_thresholds.h"
#include "sim/engine/power/threshold_file.h"

namespace orrery {

// Those of POLCA, of which `at` changes what it names: {"first": 0.8, "second": 0.89, "release":
// 0.05, "low": 0.904, "lower": 0.787, "high": 0.926, "high_priority": 2}. Shares of a limit and of
// the full clock. Errors: thresholds that are not in order, clocks below those that were measured.
struct AskedThresholds {
  ThresholdPreset shares;
  std::optional<std::int32_t> high_priority = {};  // none: the highest that can be capped
};
AskedThresholds read_thresholds(const std::optional<JsonValue>& at);

// Clocks as levels of caps that stand for clocks (work_caps): the lower level where a clock is
// between two.
PowerThresholds power_thresholds(const AskedThresholds& asked);

}  // namespace orrery
