// SPDX-License-Identifier: Apache-2.0
// Walks a copy of the cluster to a later time.
#include "sim/engine/fleet/future_room.h"

namespace orrery {

FutureRoom::FutureRoom(const FleetState& state)
    : state_(&state), slots_(state.slots()), power_(state), shared_(state.shared()) {}

void FutureRoom::take(std::uint32_t job, const Grants& place) {
  power_.take(job, place);
  if (!state_->shares(job)) {
    slots_.take(place);
    return;
  }
  // It may be closed by then, and is opened again for this one.
  const std::int32_t host = place.front().host;
  const bool opens = shared_.join(state_->gpu_for(job, place), host,
                                  {.job = job, .milli = state_->job(job).milli});
  const HostGrant slot = one_gpu_on(host);
  if (opens) slots_.take({&slot, 1});
}

void FutureRoom::give(std::uint32_t job, const Grants& place) {
  power_.give(job, place);
  if (!state_->shares(job)) {
    slots_.give(place);
    return;
  }
  const SharedGpus::Left left = shared_.leave(job);
  const HostGrant slot = one_gpu_on(left.host);
  if (!left.other) slots_.give({&slot, 1});
}

bool FutureRoom::fits(std::uint32_t job) const {
  const bool joins = state_->shares(job) && shared_.find(slots_, state_->job(job).milli);
  if (joins && power_.has(job)) return true;
  return power_.fits(job, slots_);
}

FleetTime first_place(const FleetState& state, std::uint32_t job, FutureRoom& future) {
  FleetTime at = fleet_never;
  bool there = false;
  state.promised().each([&](const RunningEnd& end) {
    if (there && end.at > at) return false;
    future.give(end.job, state.grants_of(end.job));
    at = end.at;
    there = there || future.fits(job);
    return true;
  });
  return at;
}

}  // namespace orrery
