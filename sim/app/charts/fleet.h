// SPDX-License-Identifier: Apache-2.0
// Reads what charts and pages say of a schedule's points from its answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/question/compare/race.h"

namespace orrery {

// "easy, pack, gpus 512".
std::string fleet_point_name(const JsonValue& point);
// Error: an answer without points, or whose best is none of them.
JsonValue best_fleet_point(const JsonValue& answer);
// Over a point's runs: "wait_s" or "completion_s"; nothing where one of them is of no job.
std::optional<SeedMean> mean_of_runs(const std::vector<JsonValue>& runs, const char* key);

}  // namespace orrery
