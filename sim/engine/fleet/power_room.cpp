// SPDX-License-Identifier: Apache-2.0
// Adds up what jobs need, and looks for places on what feeds leave of the hosts.
#include "sim/engine/fleet/power_room.h"

#include <algorithm>

namespace orrery {
namespace {

// Calls look(hosts that feeds leave); false: they leave too few.
template <class Look>
bool look_at_left(const FeedBudget& feeds, const FeedLoads& loads, std::int64_t each,
                  std::int32_t gpus, const Slots& free, const Look& look) {
  if (feeds.empty() || !feeds.binds(loads, each, gpus)) return look(free);
  if (feeds.refuses(loads, each, gpus)) return false;
  Slots view = free;
  feeds.narrow(loads, each, view);
  return look(view);
}

}  // namespace

FuturePower::FuturePower(const FleetState& state)
    : state_(&state), milliwatts_(state.milliwatts()), feeds_(state.feeds().loads()) {}

void FuturePower::add(PowerUser user, std::int32_t gpus, const Grants& place, std::int32_t sign) {
  milliwatts_ += sign * state_->power().extra(user, gpus);
  if (!feeds_.empty()) state_->feeds().add(feeds_, place, state_->power().extra(user, 1), sign);
}

void FuturePower::add(std::uint32_t job, const Grants& place, std::int32_t sign) {
  if (!state_->draws_part(job)) {
    add(state_->power_user(job), state_->job(job).gpus, place, sign);
    return;
  }
  milliwatts_ += sign * state_->extra_milliwatts(job);
}

bool FuturePower::fits(std::uint32_t job, const Slots& future) const {
  return has(job) &&
         stands(state_->power_user(job), state_->job(job).gpus, state_->level_of(job), future);
}

bool FuturePower::fits(PowerUser user, std::int32_t gpus, std::int32_t within,
                       const Slots& future) const {
  return has(user, gpus) && stands(user, gpus, within, future);
}

// On what feeds leave.
bool FuturePower::stands(PowerUser user, std::int32_t gpus, std::int32_t within,
                         const Slots& future) const {
  return look_at_left(state_->feeds(), feeds_, state_->power().extra(user, 1), gpus, future,
                      [&](const Slots& left) { return Placer::fits(left, gpus, within); });
}

bool FuturePower::find(PowerUser user, std::int32_t gpus, std::int32_t within, const Slots& future,
                       Placer& placer, Grants& out, std::uint32_t job) const {
  return has(user, gpus) &&
         look_at_left(state_->feeds(), feeds_, state_->power().extra(user, 1), gpus, future,
                      [&](const Slots& left) { return placer.find(left, gpus, out, within, job); });
}

bool FuturePower::carries(PowerUser user, std::int32_t gpus, const Grants& place) const {
  return has(user, gpus) && state_->feeds().carries(feeds_, state_->power().extra(user, 1), place);
}

bool FuturePower::refuses(PowerUser user, std::int32_t gpus) const {
  return !has(user, gpus) || state_->feeds().refuses(feeds_, state_->power().extra(user, 1), gpus);
}

void FuturePower::raise_to(const FuturePower& other) {
  milliwatts_ = std::max(milliwatts_, other.milliwatts_);
  for (std::size_t i = 0; i < feeds_.size(); ++i) feeds_[i] = std::max(feeds_[i], other.feeds_[i]);
}

bool is_free(const Slots& slots, const Grants& place) {
  return std::all_of(place.begin(), place.end(), [&](const HostGrant& grant) {
    for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
      if (slots.free_of(host) < grant.gpus) return false;
    return true;
  });
}

bool FeedGate::could_carry(PowerUser user, std::int32_t gpus, std::int32_t within) {
  const std::int64_t each = state_.power().extra(user, 1);
  const auto known = known_.find({each, gpus, within});
  if (known != known_.end()) return known->second;
  Slots free(question_.shape);
  for (std::int32_t i = 0; i < question_.breakdowns.spare_hosts; ++i)
    free.set_out(question_.shape.hosts - 1 - i, true);
  const bool fits = look_at_left(state_.feeds(), idle_, each, gpus, free, [&](const Slots& left) {
    return Placer::fits(left, gpus, within);
  });
  return known_[{each, gpus, within}] = fits;
}

}  // namespace orrery
