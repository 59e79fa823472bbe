// SPDX-License-Identifier: Apache-2.0
// Finds runs in whose mean TTFT a stall stands: kernels that compiled, connections that opened.
#pragma once

#include "sim/validate/serving/serving_case.h"

namespace orrery {

// R14 (a): the 99th percentile of TTFT is a minute, the median seconds.
void skip_ttft_of_stalls(ServingCases& cases);
// R14 (c): TTFT falls by more than 1.5 times at a higher concurrency of the same deployment.
void skip_falling_ttft(ServingCases& cases);
// R14 (b): the twin of a row that prints such percentiles.
void skip_ttft_of_stalled_twins(ServingCases& cases);
// R14c: all runs of a campaign take seconds to the first token, whatever the load.
void drop_stalled_campaigns(ServingCases& cases);

}  // namespace orrery
