// SPDX-License-Identifier: Apache-2.0
// Knows a serving engine's command line as the settings of one of its steps.
#pragma once

#include "sim/launch/read/given_run.h"

namespace orrery {

// One engine's layout, model, formats and release, as a step of `decode`, or what `asked` says.
// What counts requests has no effect on one step; guessed tokens are not predicted there.
GivenRun one_step_of(const GivenRun& engine, const SortedJson& asked);

}  // namespace orrery
