// SPDX-License-Identifier: Apache-2.0
// Knows which settings of a schedule can be searched, and finds values of each that make sense.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/question/settings/catalogues.h"

namespace orrery {

// policy, place, spares, gpus, power_limit, and whatever else has a few names to choose from.
std::vector<std::string> searchable_settings();

// The question with a list for each setting that its "search" names and that is no list or range
// yet: all names of a rule; spares by how many hosts are under repair at a time; accelerators and a
// limit of power around those that are given, a limit without one around the most that the cluster
// can draw. Some of these a question may not allow. Errors: a setting that cannot be searched (with
// the nearest one that can), spares where nothing fails.
JsonValue with_searched_values(const JsonValue& settings, Catalogues& catalogues);

}  // namespace orrery
