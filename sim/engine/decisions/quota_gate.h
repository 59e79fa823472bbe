// SPDX-License-Identifier: Apache-2.0
// Holds jobs of a queue back while it has what it may hold.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

// Jobs of a queue pass in the order in which they were submitted. What passed counts until it ends,
// also while it waits. With loans a queue's next jobs pass as well, to be stopped first; loans
// become the queue's own, the oldest first, as soon as there is room for them.
class QuotaGate {
 public:
  QuotaGate(FleetState& state, const FleetQuestion& question)
      : state_(state), quotas_(question.quotas), queues_(question.quotas.size()) {}
  // Whether a job may ever pass.
  bool admits(std::uint32_t job) const;
  void submit(std::uint32_t job);
  // Ended jobs make room.
  void settle();

 private:
  struct Queue {
    // Thousandths of accelerators of jobs that passed within the quota.
    std::int64_t own = 0;
    std::deque<std::uint32_t> held;       // not passed
    std::deque<std::uint32_t> borrowing;  // passed beyond the quota, in order
  };
  void release(std::size_t queue);

  FleetState& state_;
  const std::vector<QueueQuota>& quotas_;
  std::vector<Queue> queues_;
};

}  // namespace orrery
