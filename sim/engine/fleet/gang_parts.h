// SPDX-License-Identifier: Apache-2.0
// Knows what gangs hold that are not whole, and so do not run.
#pragma once

#include <cstdint>

#include "sim/base/units/fleet_time.h"

namespace orrery {

struct GangParts {
  std::int64_t gpus = 0;      // held by them now
  std::int64_t given_up = 0;  // times that one gave back all after its timeout
  GpuMicros held = 0;         // in all
};

}  // namespace orrery
