// SPDX-License-Identifier: Apache-2.0
// Knows how traces of jobs write times: seconds, clocks and time stamps.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/units/fleet_time.h"

namespace orrery {

// "12.5", rounded to the nearest; nothing where it is no finite number. What is not within
// most_fleet_time of 0 becomes the next value beyond it.
std::optional<FleetTime> fleet_seconds(std::string_view text);

// "1-02:03:04", "02:03:04", "03:04" or "3:04": [DD-]HH:MM:SS, of at most 7 digits in front. Else
// nothing.
std::optional<FleetTime> fleet_clock(std::string_view text);

// "2017-10-09 07:01:55" since 1970-01-01, with `between` after the date. Else nothing.
std::optional<FleetTime> fleet_stamp(std::string_view text, char between);

}  // namespace orrery
