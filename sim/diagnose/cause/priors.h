// SPDX-License-Identifier: Apache-2.0
// Knows how probable each cause is before a run's files are read.
#pragma once

#include <vector>

#include "sim/diagnose/cause/causes.h"
#include "sim/engine/scenario.h"

namespace orrery {

// Shares of the runs that somebody asks about, of every cause in the order of their kinds; their
// sum is not one. Causes of parts that fail have those of such parts in the run: more in larger
// runs, by the reliability catalogue (docs/design/diagnose.md).
std::vector<double> priors_of(const Scenario& scenario);

}  // namespace orrery
