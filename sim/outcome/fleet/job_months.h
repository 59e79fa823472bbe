// SPDX-License-Identifier: Apache-2.0
// Makes of what is known about months of training what a shared cluster asks: how its jobs start,
// save and go on, and what breaks.
#pragma once

#include <cstdint>

#include "hw_models/reliability.h"
#include "sim/engine/cluster.h"
#include "sim/engine/jobs/breakdowns.h"
#include "sim/engine/jobs/job_work.h"
#include "sim/outcome/months/goodput.h"

namespace orrery {

// Starts, saves, failures of software and planned stops of one job, with its last tier of
// checkpoints: the one that survives everything. What it reads from there as it restarts. `step` of
// it takes so long alone and well placed.
JobWork month_work(const GoodputCase& months, std::int64_t step_ps);

// Steps between saves that are so far apart; 0: nothing is saved.
std::int64_t save_steps_of(Seconds interval, std::int64_t step_ps);

// What steps take longer for all that is no checkpoint: slow hosts, data, evaluation. At least 1.
double slower_steps(const GoodputCase& months);

// Of jobs of which only a length is recorded: they start as others do and save every `interval`
// (0: never), which stops them for as long as ranks take to agree.
JobWork recorded_work(const ReliabilityProfile& profile, Seconds interval);

// The hosts that fail more often, of so many; none where the profile does not know how many. They
// come back from repairs as they were.
LemonHosts lemon_hosts(const ReliabilityProfile& profile, std::int32_t hosts);

// What breaks on a cluster, whoever uses it: all failures of the profile but those of software.
BreakdownPlan breakdown_plan(const Cluster& cluster, const ReliabilityProfile& profile);

}  // namespace orrery
