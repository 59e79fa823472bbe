// SPDX-License-Identifier: Apache-2.0
// Counts stops in a row, and doubles delays.
#include "sim/engine/fleet/requeue_holds.h"

#include <algorithm>

namespace orrery {

FleetTime requeue_delay(const RequeueDelay& rule, std::int32_t n) {
  FleetTime delay = rule.first;
  if (delay.us <= 0) return delay;
  for (std::int32_t i = 1; i < n && delay < rule.most; ++i)
    delay.us = std::min(2 * delay.us, rule.most.us);
  return delay;
}

bool RequeueHolds::hold(std::uint32_t job, FleetTime now, FleetTime ran) {
  if (rule_.first.us <= 0) return false;
  std::int32_t& row = rows_[job];
  if (ran.us >= 2 * std::max(rule_.first, rule_.most).us) row = 0;
  const FleetTime until = now + requeue_delay(rule_, ++row);
  until_[job] = until;
  order_.insert({until, job});
  return true;
}

std::uint32_t RequeueHolds::take() {
  const std::uint32_t job = order_.begin()->second;
  order_.erase(order_.begin());
  until_.erase(job);
  return job;
}

}  // namespace orrery
