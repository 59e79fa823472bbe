// SPDX-License-Identifier: Apache-2.0
// Shows trainings of a shared cluster: their layouts and steps, those of RL, and
// what became of them.
#pragma once

#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

void add_trainings(Document& document, const Scheduled& scheduled);
// Steps of RL, by phase. Nothing where the question has none.
void add_post_trainings(Document& document, const Scheduled& scheduled);
Json post_trainings_json(const FleetJobs& jobs);
// Pools on which jobs of RL take turns.
Json shared_pools_json(const FleetJobs& jobs);

// Of the first run of each point; of a few points and trainings, unless the document is full.
void add_training_results(Document& document, const Scheduled& scheduled);

}  // namespace orrery
