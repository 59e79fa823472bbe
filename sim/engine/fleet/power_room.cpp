// SPDX-License-Identifier: Apache-2.0
// Adds up what jobs need, and looks for places on what feeds leave of the hosts.
#include "sim/engine/fleet/power_room.h"

namespace orrery {
namespace {

bool feeds_fit(const FeedBudget& feeds, const FeedLoads& loads, std::int64_t each,
               std::int32_t gpus, std::int32_t within, const Slots& free) {
  if (feeds.empty() || !feeds.binds(loads, each, gpus)) return Placer::fits(free, gpus, within);
  if (feeds.refuses(loads, each, gpus)) return false;
  Slots view = free;
  feeds.narrow(loads, each, view);
  return Placer::fits(view, gpus, within);
}

}  // namespace

FuturePower::FuturePower(const FleetState& state)
    : state_(&state), milliwatts_(state.milliwatts()), feeds_(state.feeds().loads()) {}

void FuturePower::add(std::uint32_t job, const Grants& place, std::int32_t sign) {
  milliwatts_ += sign * state_->extra_milliwatts(job);
  if (!feeds_.empty())
    state_->feeds().add(feeds_, place, state_->power().extra(state_->job(job).work, 1), sign);
}

bool FuturePower::fits(std::uint32_t number, const Slots& future) const {
  const ClusterJob& job = state_->job(number);
  return state_->has_power(milliwatts_ + state_->extra_milliwatts(number)) &&
         feeds_fit(state_->feeds(), feeds_, state_->power().extra(job.work, 1), job.gpus,
                   state_->level_of(number), future);
}

FleetTime first_place(const FleetState& state, std::uint32_t job, Slots& future,
                      FuturePower& power) {
  FleetTime at = fleet_never;
  bool there = false;
  state.promised().each([&](const RunningEnd& end) {
    if (there && end.at > at) return false;
    const Grants& place = state.grants_of(end.job);
    future.give(place);
    power.give(end.job, place);
    at = end.at;
    there = there || power.fits(job, future);
    return true;
  });
  return at;
}

bool FeedGate::could_carry(std::uint32_t number) {
  const ClusterJob& job = state_.job(number);
  const auto known = known_.find({job.work, job.gpus, state_.level_of(number)});
  if (known != known_.end()) return known->second;
  Slots free(question_.shape);
  for (std::int32_t i = 0; i < question_.breakdowns.spare_hosts; ++i)
    free.set_out(question_.shape.hosts - 1 - i, true);
  const bool fits = feeds_fit(state_.feeds(), idle_, state_.power().extra(job.work, 1), job.gpus,
                              state_.level_of(number), free);
  return known_[{job.work, job.gpus, state_.level_of(number)}] = fits;
}

}  // namespace orrery
