// SPDX-License-Identifier: Apache-2.0
// Tells of the models that a shared cluster served, and of requests that waited.
#pragma once

#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

// Nothing where the question has none.
void add_served(Document& document, const Scheduled& scheduled);
void add_batches(Document& document, const Scheduled& scheduled);

Json served_json(const FleetJobs& jobs);  // what was asked, and what a replica can do
Json batches_json(const FleetJobs& jobs);
Json slo_json(const SchedulePoint& point);  // of its first run; null where no model is served

}  // namespace orrery
