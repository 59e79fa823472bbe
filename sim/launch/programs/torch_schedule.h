// SPDX-License-Identifier: Apache-2.0
// Knows PyTorch's names of pipeline schedules.
#pragma once

#include "sim/launch/read/reading.h"

namespace orrery {

// Settles "schedule"; `said` may be null.
void read_schedule(GivenReading& reading, const Said* said);

}  // namespace orrery
