// SPDX-License-Identifier: Apache-2.0
// Writes which jobs met their deadlines, and what waiting for cheap or clean hours won.
#pragma once

#include "sim/base/json/json.h"
#include "sim/paper/document.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

void add_deadlines(Document& document, const Scheduled& scheduled);
Json deadlines_json(const SchedulePoint& point);  // of the first seed; null: no job has one

}  // namespace orrery
