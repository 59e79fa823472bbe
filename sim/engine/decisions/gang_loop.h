// SPDX-License-Identifier: Apache-2.0
// Lets gangs take what is free bit by bit, as pods of one gang are bound, until all of it is there.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/jobs/decision_loop.h"

namespace orrery {

// All that wait have their turn in the order of the list: whoever has a place starts. A gang of
// several hosts that has none takes the whole hosts, and the host for its rest, that are free, and
// holds them until it is whole. One that is not whole after the timeout gives all back and goes
// behind those of its priority (Kueue's waitForPodsReady: kueue.sigs.k8s.io, All-or-nothing with
// ready Pods, requeuingStrategy.timestamp Eviction). Two gangs that hold what the other one lacks
// wait for each other until then; where nobody runs any more, all that hold something give up then.
class GangLoop final : public DecisionLoop {
 public:
  GangLoop(FleetState& state, const FleetQuestion& question)
      : state_(state), placer_(state.placer()), timeout_(question.policy.gang_timeout) {}
  FleetTime next() const override;
  void submit(std::uint32_t /*job*/) override {}
  void settle(bool changed) override { changed_ = changed_ || changed; }
  void wake(FleetTime now) override;

 private:
  struct Part {
    Grants place;           // in no order
    std::int32_t gpus = 0;  // of it
    bool has_rest = false;  // with the host for what is no whole one
    FleetTime until;        // it gives up then
  };
  // The next job of one size that has its turn.
  struct Turn {
    std::uint32_t queue = 0;
    std::size_t from = 0, place = 0;
  };
  void give_up_until(FleetTime now);
  void leave_hosts_that_are_out();
  void deal(FleetTime now);
  bool try_one(std::uint32_t job, FleetTime now);
  bool take_part(const ClusterJob& job, Part& part);
  void take(Part& part, const Grants& more, std::int32_t gpus);
  void give_back(const Part& part);
  void start_whole(std::uint32_t job, FleetTime now);

  FleetState& state_;
  Placer placer_;
  FleetTime timeout_;
  bool changed_ = false;
  std::map<std::uint32_t, Part> parts_;  // by job
};

}  // namespace orrery
