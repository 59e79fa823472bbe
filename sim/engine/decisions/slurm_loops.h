// SPDX-License-Identifier: Apache-2.0
// Lets Slurm's loops wake up on a cluster's clock, and starts what they start.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/jobs/decision_loop.h"
#include "sim/engine/slurm/slurm_passes.h"

namespace orrery {

// The main loop looks once a second; it runs where a job was submitted or ended since it last ran
// and batch_sched_delay has passed, and every sched_interval. The backfill loop sleeps bf_interval
// and runs where something changed. Passes take no time. Where hosts break or go out both run as
// after an end; whoever was stopped is submitted again with its own priority.
class SlurmLoops final : public DecisionLoop {
 public:
  SlurmLoops(FleetState& state, const FleetQuestion& question);
  // When a loop runs next; fleet_never while nobody waits.
  FleetTime next() const override;
  void submit(std::uint32_t job) override;
  // Forgets jobs that ended.
  void settle(bool changed) override;
  void wake(FleetTime now) override;

 private:
  FleetTime next_main() const;
  FleetTime next_backfill() const;
  void start(const SlurmPasses::Start& start, FleetTime now);
  void look_at_hosts();
  void look_at_stops(FleetTime now);
  MultifactorJob factors_of(std::uint32_t job) const;
  void renew_priorities(FleetTime now);

  FleetState& state_;
  SlurmSettings settings_;
  SlurmPasses passes_;
  Multifactor multifactor_;
  std::int32_t highest_ = 0;  // priority of a job: QOS priorities are shares of it
  FleetTime priorities_from_;
  FleetTime now_;
  bool asked_ = false, changed_ = false;
  // Only where hosts may go out.
  bool loses_hosts_;
  bool lost_ = false;      // some did, or came back, or a job came back, since the last look
  std::vector<bool> out_;  // by host, as passes have it
  std::set<std::uint32_t> running_;     // as passes have it
  std::vector<std::uint32_t> stopped_;  // kept back
  FleetTime last_main_, last_whole_, backfill_from_;
};

}  // namespace orrery
