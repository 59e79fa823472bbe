// SPDX-License-Identifier: Apache-2.0
// Finds why the best point of a schedule is the best, and what would make another one so.
#pragma once

#include "sim/question/schedule/schedule.h"

namespace orrery {

// What each point that was run has more than the best one; nothing of one seed alone.
std::vector<PointDifference> differences_of(const Scheduled& scheduled,
                                            const FleetFigure& objective);

// From the runs that there are, over the seeds that two points have both. Figures count whose
// difference is more than chance: 90% intervals beyond 0; of one seed more than 0.2%
// (sim/outcome/noise.h: least_gain).
BestReasons reasons_of(const Scheduled& scheduled, const FleetFigure& objective);

}  // namespace orrery
