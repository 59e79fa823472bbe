// SPDX-License-Identifier: Apache-2.0
// Says whether a job has a place that the limit and all feeds of power can carry, now or later.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

// What must be there at some time: drawn if all that run then are at their least caps.
class FuturePower {
 public:
  // As it is now.
  explicit FuturePower(const FleetState& state);
  // A job takes a place, or gives it back.
  void take(std::uint32_t job, const Grants& place) { add(job, place, 1); }
  void give(std::uint32_t job, const Grants& place) { add(job, place, -1); }
  // Likewise whoever takes so many accelerators (1) or gives them back (-1).
  void add(PowerUser user, std::int32_t gpus, const Grants& place, std::int32_t sign);
  // The job has power, and a place on hosts that are free then.
  bool fits(std::uint32_t job, const Slots& future) const;
  // There is power for it, by the limit of all.
  bool has(std::uint32_t job) const {
    return state_->has_power(milliwatts_ + state_->extra_milliwatts(job));
  }
  bool fits(PowerUser user, std::int32_t gpus, std::int32_t within, const Slots& future) const;
  // By the rule of a placer. `job`: whose it is.
  bool find(PowerUser user, std::int32_t gpus, std::int32_t within, const Slots& future,
            Placer& placer, Grants& out, std::uint32_t job) const;
  // A place that is free then has power.
  bool carries(PowerUser user, std::int32_t gpus, const Grants& place) const;
  // There is no power for so many, wherever they are.
  bool refuses(PowerUser user, std::int32_t gpus) const;
  // The larger ones of both.
  void raise_to(const FuturePower& other);

 private:
  // There is power for so many, by the limit of all.
  bool has(PowerUser user, std::int32_t gpus) const {
    return state_->has_power(milliwatts_ + state_->power().extra(user, gpus));
  }
  void add(std::uint32_t job, const Grants& place, std::int32_t sign);
  bool stands(PowerUser user, std::int32_t gpus, std::int32_t within, const Slots& future) const;
  const FleetState* state_;
  std::int64_t milliwatts_;
  FeedLoads feeds_;
};

// All accelerators of a place are free, on hosts that are in use.
bool is_free(const Slots& slots, const Grants& place);

// Turns away jobs that feeds could not carry on an empty cluster.
class FeedGate {
 public:
  FeedGate(const FleetState& state, const FleetQuestion& question)
      : state_(state), question_(question), idle_(state.feeds().loads()) {}
  bool admits(std::uint32_t job) {
    return admits(state_.power_user(job), state_.job(job).gpus, state_.level_of(job));
  }
  bool admits(PowerUser user, std::int32_t gpus, std::int32_t within) {
    return idle_.empty() || could_carry(user, gpus, within);
  }

 private:
  bool could_carry(PowerUser user, std::int32_t gpus, std::int32_t within);
  const FleetState& state_;
  const FleetQuestion& question_;
  FeedLoads idle_;
  // By what an accelerator draws, accelerators, level.
  std::map<std::tuple<std::int64_t, std::int32_t, std::int32_t>, bool> known_;
};

}  // namespace orrery
