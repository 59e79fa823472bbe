// SPDX-License-Identifier: Apache-2.0
// Reads times of a shared cluster.
#pragma once

#include "sim/base/json/json.h"
#include "sim/base/units/fleet_time.h"

namespace orrery {

// A time of at least `least` and at most 1,000 years. Error that says `expected`.
FleetTime read_fleet_time(const JsonValue& at, Seconds least, const char* expected);

// The same from 0 on, of an entry of jobs.
FleetTime read_entry_time(const JsonValue& at);

}  // namespace orrery
