// SPDX-License-Identifier: Apache-2.0
// Tells which point of a schedule is the best, how sure that is, why, and what would change it.
#pragma once

#include <string>

#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

// The chance that no other point is better, or why this one is not in question.
std::string chance_cell(const SchedulePoint& point);

void add_best(Document& document, const Scheduled& scheduled);
void add_reasons(Document& document, const Scheduled& scheduled);
void add_differences(Document& document, const Scheduled& scheduled);

Json reasons_json(const Scheduled& scheduled);
Json differences_json(const Scheduled& scheduled);
Json search_json(const Scheduled& scheduled);

}  // namespace orrery
