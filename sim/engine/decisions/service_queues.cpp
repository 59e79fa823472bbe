// SPDX-License-Identifier: Apache-2.0
// Counts what each job has held, and knows when that is too much for the first queue.
#include "sim/engine/decisions/service_queues.h"

namespace orrery {

bool ServiceQueues::move_until(FleetTime now) {
  bool moved = false;
  while (next() <= now) {
    const FirstEnd end = ends_.top();
    ends_.pop();
    // It may have given them back meanwhile.
    if (services_[end.job].since != end.since || state_.is_over(end.job, now)) continue;
    state_.demote(end.job);
    moved = true;
  }
  return moved;
}

void ServiceQueues::settle(FleetTime now) {
  for (const HoldingChange& change : state_.holding_changes) {
    if (change.job >= services_.size()) services_.resize(change.job + 1);
    Service& service = services_[change.job];
    const std::int64_t milli = milli_gpus(state_.job(change.job));
    if (!change.holds) {
      service.attained += static_cast<GpuMicros>((now - service.since).us) * milli;
      service.since = fleet_never;
      continue;
    }
    service.since = now;
    if (state_.ranks().is_demoted(change.job)) continue;
    const GpuMicros left = (first_ * whole_gpu - service.attained + milli - 1) / milli;
    ends_.push({now + FleetTime{static_cast<std::int64_t>(left)}, change.job, now});
  }
  state_.holding_changes.clear();
}

}  // namespace orrery
