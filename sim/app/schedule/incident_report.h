// SPDX-License-Identifier: Apache-2.0
// Writes what incidents came to.
#pragma once

#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

// Of the first run of a point.
Json incidents_json(const SchedulePoint& p);
// A row an incident of each point, of many points of the best alone.
void add_incidents(Document& document, const Scheduled& s);

}  // namespace orrery
