// SPDX-License-Identifier: Apache-2.0
// Holds all that stops jobs of a cluster, in the order in which it counts at one instant.
#pragma once

#include <cstdint>

#include "sim/engine/fleet/fleet_record.h"
#include "sim/engine/losses/breakdown_pass.h"
#include "sim/engine/losses/host_stock.h"
#include "sim/engine/losses/incident_pass.h"
#include "sim/engine/losses/own_stops.h"
#include "sim/engine/losses/power_hours.h"

namespace orrery {

// First repairs, then what breaks, incidents, stops of single jobs, and limits of power.
class FleetLosses {
 public:
  // Both must outlive it.
  FleetLosses(FleetState& state, const FleetQuestion& question)
      : hosts_(state, question),
        breakdowns_(state, hosts_, question),
        incidents_(state, hosts_, question),
        own_stops_(state, question.seed),
        power_hours_(state, question) {}
  const HostStock& hosts() const { return hosts_; }
  // When hosts may come back, or an incident happens; when the limit of power changes; when
  // anything happens.
  FleetTime next_return() const;
  FleetTime next_limit() const { return power_hours_.next(); }
  FleetTime next() const;
  void submit(std::uint32_t job, FleetTime now) { own_stops_.submit(job, now); }
  // Whether anything changed.
  bool happen_until(FleetTime now);
  // After the decisions of an instant.
  void look(FleetTime now) { incidents_.look(now); }
  // Once the run is over.
  void take(FleetTime now, FleetRecord& record);

 private:
  HostStock hosts_;
  BreakdownPass breakdowns_;
  IncidentPass incidents_;
  OwnStops own_stops_;
  PowerHours power_hours_;
};

}  // namespace orrery
