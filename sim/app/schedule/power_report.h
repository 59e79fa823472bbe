// SPDX-License-Identifier: Apache-2.0
// Tells what a cluster drew, and what caps of power cost: for people and for machines.
#pragma once

#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

void add_power(Document& document, const Scheduled& scheduled);
// Of the first seed.
Json power_json(const SchedulePoint& point);
// What caps do to each kind of work, of the first point whose limit moves clocks.
Json caps_json(const Scheduled& scheduled);

}  // namespace orrery
