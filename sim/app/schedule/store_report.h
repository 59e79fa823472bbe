// SPDX-License-Identifier: Apache-2.0
// Tells what jobs lost to each other on a store that they share: for people and for machines.
#pragma once

#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

void add_store(Document& document, const Scheduled& scheduled);
// Of the first seed; null where no store is shared.
Json store_json(const SchedulePoint& point);

}  // namespace orrery
