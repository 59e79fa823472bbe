// SPDX-License-Identifier: Apache-2.0
// Lets jobs pass a head that has no place, as EASY backfilling does, or whoever fits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/fleet/future_room.h"

namespace orrery {

class EasyPass {
 public:
  // `any`: heads are promised nothing, but for whom others were stopped that save.
  EasyPass(FleetState& state, bool any) : state_(state), any_(any) {}
  // Promises the head its start, and starts jobs behind it that leave it that start.
  void decide(FleetTime now);
  // A head started, or a job ended before its limit: what was promised may come sooner.
  void forget() { head_ = UINT32_MAX; }

 private:
  // The next job of one size that may pass.
  struct Candidate {
    std::uint32_t queue = 0;
    std::size_t from = 0;  // places before were looked at
    std::size_t place = 0;
    bool over = false;                   // nothing more of this size
    std::uint64_t refused = UINT64_MAX;  // `started_` when a long one was refused
  };
  void promise();
  void look_for(Candidate& one, FleetTime window);
  void try_one(Candidate& one, FleetTime now, FleetTime window);
  bool leaves_the_head(const WaitingJob& job, FleetTime window);
  bool head_has_place() const;
  bool may_fit(const SizeQueue& queue) const { return state_.may_fit(queue.gpus(), queue.milli()); }
  const WaitingJob& job_of(const Candidate& one) {
    return state_.waiting().queue(one.queue).at(one.place);
  }

  FleetState& state_;
  bool any_;
  std::uint32_t head_ = UINT32_MAX;   // the job that is promised a start
  FleetTime at_;                      // that start
  std::int64_t spare_ = 0;            // a pool's accelerators that the head leaves then
  std::optional<FutureRoom> future_;  // as it is then, before the head starts
  std::vector<Candidate> sizes_;
  std::uint64_t started_ = 0;  // jobs that passed a head
  WaitingJob last_;            // the last of them
  Grants found_;
};

}  // namespace orrery
