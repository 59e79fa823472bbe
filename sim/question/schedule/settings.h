// SPDX-License-Identifier: Apache-2.0
// Knows the settings of schedule.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/units/fleet_time.h"
#include "sim/question/losses/entry_time.h"
#include "sim/question/settings/settings.h"

namespace orrery {

// Every setting of schedule, in the order of the help text.
const std::vector<Setting>& schedule_settings();

// Whether it is one value, whatever commas its text has.
bool is_one_value_of_schedule(const std::string& key);

// The settings of a file (may be "") with `flags` on top. Error: a key that schedule does not know.
JsonValue merge_schedule_settings(const std::string& file, const SortedJson& flags);
JsonValue merge_schedule_settings(const JsonValue& document, const SortedJson& flags);

inline constexpr std::int64_t most_scheduled_gpus = 10'000'000;
inline constexpr std::int64_t most_seeds = 1000;

// File and path of a part of a question, as settings that are read apart name their place.
std::string place_of(const JsonValue& at);

// So many whole steps together, rounded up. Error at `at`: more than 1,000 years.
FleetTime time_of_steps(const JsonValue& at, double steps, std::int64_t step_ps);

}  // namespace orrery
