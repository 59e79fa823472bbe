// SPDX-License-Identifier: Apache-2.0
// Moves running jobs where that pays: off the hosts that a head needs, and to better places.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/fleet/power_room.h"

namespace orrery {

// A move is a save and a start. Its price is the accelerator-time that both take, and a step.
class DefragmentPass {
 public:
  DefragmentPass(FleetState& state, const FleetQuestion& question);
  // For a head that asks for no more than is free and has no place: moves jobs of single hosts
  // together, those of the emptiest hosts first, until it has one. It pays if they lose less than
  // the head would wait for the place that it can be promised. Whether the head has a place then.
  bool make_room(FleetTime now);
  // Moves whoever still wins more on a better place, which is free, than the move takes; whether
  // anybody did.
  bool improve(FleetTime now);

 private:
  struct Move {
    std::uint32_t job = 0;
    Grants place;
  };
  bool may_move(std::uint32_t job) const;
  bool empties(std::int32_t host, std::int32_t wanted, Slots& future, FuturePower& power,
               std::vector<Move>& moves);
  bool plan(const WaitingJob& head, Slots& future, std::vector<Move>& moves);
  FleetTime wait_of_head(FleetTime now) const;
  GpuMicros price_of(std::uint32_t job) const;
  void carry_out(std::vector<Move>& moves, FleetTime now);

  FleetState& state_;
  const FleetQuestion& question_;
  Placer together_, by_rule_;
  bool priced_;  // some jobs have better places than others
  // Nothing has changed since a head was looked at in vain, or better places were.
  std::uint32_t head_ = UINT32_MAX;
  std::uint64_t seen_ = UINT64_MAX, improved_ = UINT64_MAX;
};

}  // namespace orrery
