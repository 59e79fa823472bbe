// SPDX-License-Identifier: Apache-2.0
// Makes a chance for each step of a share of the time in which the host launches.
#include "sim/outcome/serving/host_stalls.h"

#include <algorithm>

namespace orrery {

HostStalls host_stalls(const StackServing& serving, Ticks launching) {
  const Ticks mean = to_ticks(serving.host.stall.get());
  if (mean <= Ticks{}) return {};
  const double lasting = static_cast<double>(launching.ps) / static_cast<double>(mean.ps);
  return {.share = std::min(1.0, serving.host.stall_share.get() * lasting), .mean = mean};
}

}  // namespace orrery
