// SPDX-License-Identifier: Apache-2.0
// Says how long a pass takes that waits for its device and for the slowest of several hosts.
#pragma once

#include <cstdint>

#include "sim/base/units/units.h"

namespace orrery {

// Hosts of ranks that wait for each other in every pass. Their times are independent and normal,
// with `spread` as standard deviation over mean.
struct HostPace {
  double spread = 0;       // 0: all take the mean
  std::int64_t ranks = 1;  // at least one
};

// Mean time until a device that needs `device` and the last of those hosts, of `host` each in the
// mean, are done. Never less than the longer of the two, which it is without a spread.
Seconds paced_by_hosts(Seconds device, Seconds host, const HostPace& pace);

}  // namespace orrery
