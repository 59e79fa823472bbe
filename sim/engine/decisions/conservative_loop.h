// SPDX-License-Identifier: Apache-2.0
// Promises every job a start and a place as it comes, and nobody is delayed beyond it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/backfill/room_plan.h"
#include "sim/engine/decisions/power_plan.h"
#include "sim/engine/jobs/decision_loop.h"

namespace orrery {

// Conservative backfilling (Mu'alem and Feitelson, 2001): a job gets the first start at which it
// has a place for its whole limit, all those before it kept. Where a job ends before its limit, one
// after the other, in the order of the list, is taken out of the plan and put in again as early as
// there is room, not later than it stood there. Hosts that break void the plan: who has no place
// any more is promised another one.
//
// A promise that no room could improve is not looked at. What became free since it was looked at
// last is kept: a gang of one host begins earlier only on a host and at a time that are among it,
// since all else is as full as it was then, or fuller.
//
// Where power is limited a start is promised on hosts whose feeds carry it for the whole limit,
// with all that are promised as well, and the plan is made anew whenever anything ends early.
class ConservativeLoop final : public DecisionLoop {
 public:
  ConservativeLoop(FleetState& state, const FleetQuestion& question);
  FleetTime next() const override;
  void submit(std::uint32_t job) override { come_.push_back(job); }
  void settle(bool changed) override { void_ = void_ || changed; }
  void wake(FleetTime now) override;

 private:
  struct Promise {
    WaitingJob job;
    FleetTime at = fleet_never;
    Grants place = {};       // from then on; none where it is never
    std::uint64_t seen = 0;  // how much had become free when it was looked at last
    FleetTime end() const;
    HeldRoom room() const { return {at, end(), place}; }
  };
  // A job that runs, as the plan has it.
  struct Running {
    std::uint32_t job = 0;
    HeldRoom room;
  };
  void promise(Promise& promise, FleetTime now);
  FleetTime find(const Promise& promise, Grants& place);
  bool may_improve(const Promise& promise) const;
  std::uint64_t freed_so_far() const { return forgotten_ + freed_.size(); }
  void forget_freed();
  void renew(FleetTime now);
  bool refresh(FleetTime now);
  bool ended_early(FleetTime now, std::vector<Running>& ended, std::vector<Running>& run) const;
  bool is_as_planned(FleetTime now, const std::vector<Running>& ended) const;
  bool may_start(const Promise& promise) const;
  bool start_due(FleetTime now);
  void show(const std::vector<std::int32_t>& room);
  void take(const Promise& promise);
  void give(const Promise& promise);

  FleetState& state_;
  Placer placer_;
  RoomPlan plan_;
  PowerPlan power_;                  // of the same jobs, where it is limited
  Slots view_;                       // with what a job may have
  std::vector<Promise> promises_;    // of those that wait, in the order of the list
  std::vector<std::uint32_t> come_;  // since the last look
  std::vector<Running> running_;     // since the plan was made, by job; some have ended
  std::vector<HeldRoom> freed_;      // in the order in which it became so
  std::uint64_t forgotten_ = 0;      // of those before
  std::size_t spans_ = 0;            // of the plan when it had none to join
  bool void_ = false;
};

}  // namespace orrery
