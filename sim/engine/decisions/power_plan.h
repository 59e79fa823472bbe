// SPDX-License-Identifier: Apache-2.0
// Holds what the limit and feeds of power will carry, from now on, beside the plan of a cluster.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "sim/engine/fleet/power_room.h"

namespace orrery {

// Spans of time one after the other, the last one for ever, as those of RoomPlan. Limits are taken
// to stay as they are now.
class PowerPlan {
 public:
  // Without any limit it is empty, and is not asked.
  PowerPlan(const FleetState& state, const FleetQuestion& question)
      : state_(state), limited_(question.power_limit_milliwatts > 0 || !question.feeds.empty()) {
    clear({});
  }
  bool empty() const { return !limited_; }
  // All that run now do so for ever.
  void clear(FleetTime now);
  // Time goes on: what was before is forgotten.
  void advance(FleetTime now);
  // A job takes a place from `from` to `to`, or gives it back.
  void take(std::uint32_t job, const Grants& place, FleetTime from, FleetTime to) {
    change(job, place, from, to, 1);
  }
  void give(std::uint32_t job, const Grants& place, FleetTime from, FleetTime to) {
    change(job, place, from, to, -1);
  }
  bool has_room(std::uint32_t job, const Grants& place, FleetTime from, FleetTime to) const;
  // When the last span before `to` in which a job has no power wherever it is ends, from `from` on;
  // nothing where there is none.
  std::optional<FleetTime> blocked_until(std::uint32_t job, FleetTime from, FleetTime to) const;
  // A place for a job on hosts that are free all that time, by the rule.
  bool find(std::uint32_t job, const Slots& free, FleetTime from, FleetTime to, Placer& placer,
            Grants& out) const;

 private:
  void split(FleetTime at);
  void change(std::uint32_t job, const Grants& place, FleetTime from, FleetTime to,
              std::int32_t sign);
  FuturePower most(FleetTime from, FleetTime to) const;

  const FleetState& state_;
  bool limited_;
  std::map<FleetTime, FuturePower> spans_;  // by their begins
};

}  // namespace orrery
