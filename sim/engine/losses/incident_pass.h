// SPDX-License-Identifier: Apache-2.0
// Lets happen to a shared cluster what is written down: hosts go out, or are drained, and return.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/losses/host_stock.h"
#include "sim/engine/losses/suspend_pass.h"

namespace orrery {

class IncidentPass {
 public:
  IncidentPass(FleetState& state, HostStock& hosts, const FleetQuestion& question);
  // When something begins or is over next.
  FleetTime next() const { return done_ < moments_.size() ? moments_[done_].at : fleet_never; }
  // Whether anything changed.
  bool happen_until(FleetTime now) { return next() <= now && happen(now); }
  // After the decisions of an instant: whoever was stopped and has a place again waits no more.
  void look(FleetTime now) {
    if (!waiting_.empty()) look_at_waiting(now);
  }
  std::int64_t suspended() const { return suspend_.stopped(); }  // by feeds that lost a supply
  // Once the run is over: who still waits has waited until then. By incident.
  std::vector<IncidentCount> take_counts(FleetTime now);

 private:
  enum class What : std::uint8_t { back, announce, strike };
  struct Moment {
    FleetTime at;
    What what = What::strike;
    std::size_t incident = 0;
  };
  struct Stopped {
    std::size_t incident = 0;
    FleetTime at;
  };
  bool happen(FleetTime now);
  void look_at_waiting(FleetTime now);
  void strike(std::size_t incident, FleetTime now);
  void stop(std::size_t incident, std::uint32_t job, FleetTime now);
  void count_stop(std::size_t incident, std::uint32_t job, FleetTime now);
  void lose_supply(std::size_t incident, FleetTime now);
  void restore_supply(std::size_t incident);

  FleetState& state_;
  HostStock& hosts_;
  SuspendPass suspend_;
  const std::vector<Incident>& incidents_;
  std::vector<Moment> moments_;  // in order of time; at one time what comes back first
  std::size_t done_ = 0;
  std::map<std::int32_t, std::int64_t> losses_, limits_;  // by feed: supplies lost; limit with all
  std::map<std::uint32_t, Stopped> waiting_;  // jobs that it stopped and that have no place yet
  std::vector<IncidentCount> counts_;
};

}  // namespace orrery
