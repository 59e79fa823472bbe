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
  // The job has power, and a place on hosts that are free then.
  bool fits(std::uint32_t job, const Slots& future) const;

 private:
  void add(std::uint32_t job, const Grants& place, std::int32_t sign);

  const FleetState* state_;
  std::int64_t milliwatts_;
  FeedLoads feeds_;
};

// When a job has a place if all that run end as the scheduler expects; where it has none even then,
// the last of these ends. `future` and `power`, as they are now, are as they will be then.
FleetTime first_place(const FleetState& state, std::uint32_t job, Slots& future,
                      FuturePower& power);

// Turns away jobs that feeds could not carry on an empty cluster.
class FeedGate {
 public:
  FeedGate(const FleetState& state, const FleetQuestion& question)
      : state_(state), question_(question), idle_(state.feeds().loads()) {}
  bool admits(std::uint32_t job) { return idle_.empty() || could_carry(job); }

 private:
  bool could_carry(std::uint32_t job);
  const FleetState& state_;
  const FleetQuestion& question_;
  FeedLoads idle_;
  // By work, accelerators, level.
  std::map<std::tuple<std::uint16_t, std::int32_t, std::int32_t>, bool> known_;
};

}  // namespace orrery
