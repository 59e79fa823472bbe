// SPDX-License-Identifier: Apache-2.0
// Knows which steps of a run are unlike the rest, and what the usual ones took.
#pragma once

#include "sim/observe/log/run_log.h"

namespace orrery::observe {

// Gives each step its mark, makes the statistics of usual ones and says in notes what was left out.
//
// Usual is what lies within four deviations of the median (and 10%) of the steps that are no
// warm-up and that no save or evaluation touches. Warm-up: steps at the start, or after a restart,
// up to the last of the first tenth (of the first twenty steps at most) that is further away:
// slower, or, where steps are launched ahead of their work, faster.
void mark_steps(RunLog& run);

}  // namespace orrery::observe
