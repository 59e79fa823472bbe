// SPDX-License-Identifier: Apache-2.0
// Holds rows against what their machine can do at most.
#pragma once

#include "sim/validate/serving/serving_case.h"

namespace orrery {

// R9 to R9c: more than the peak, or so much of it beside decoding that something is not told.
void drop_beyond_peaks(ServingCases& cases);
// R10, R10b: one wave of prompts; requests that wait for slots that nobody tells.
void drop_waves_of_prompts(ServingCases& cases);
// R12: TPOT that does not change with the batch, far over what its bytes take.
void drop_without_graphs(ServingCases& cases);

}  // namespace orrery
