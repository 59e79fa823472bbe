// SPDX-License-Identifier: Apache-2.0
// Judges runs of one deployment by each other: pairs that differ, outliers, defective builds.
#pragma once

#include "sim/validate/serving/serving_case.h"

namespace orrery {

// R8: two runs of a deployment at one load whose TPOT differ by more than 1.3 times.
void drop_contradicting_pairs(ServingCases& cases);
// R14b: a run far slower than one before and one after it; R14 (d): one TTFT far over the others.
void drop_outliers_among_reruns(ServingCases& cases);
// R18: campaigns in which a run is over 1.8 times slower than the same within 60 days after.
void drop_defective_builds(ServingCases& cases);

}  // namespace orrery
