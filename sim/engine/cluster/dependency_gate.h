// SPDX-License-Identifier: Apache-2.0
// Keeps jobs back until those that they come after have ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"
#include "workloads/cluster_job/job_dependencies.h"

namespace orrery {

// A job is eligible once it was submitted and the last job that it comes after has ended, and its
// time to think is over. It is cancelled as soon as one that must complete does not: that failed or
// was cancelled as it is recorded, was rejected, or was cancelled here.
class DependencyGate {
 public:
  // Both must outlive it.
  DependencyGate(const ClusterJobs& list, FleetState& state);
  bool is_open() const { return held_.empty(); }  // nobody comes after another one
  // A job that comes now would not be eligible at once.
  bool holds(std::uint32_t job, FleetTime now) const {
    return !is_open() && (held_[job].open > 0 || held_[job].doomed || held_[job].from > now);
  }
  // A job comes: whether it is eligible at once.
  bool submit(std::uint32_t job, FleetTime now);
  // A job is over: it ended, or is rejected.
  void end(std::uint32_t job, bool completed, FleetTime now);
  FleetTime next() const { return ready_.empty() ? fleet_never : ready_.top().first; }
  // The next one that is eligible by now, in order of time.
  std::optional<std::uint32_t> take(FleetTime now);
  // The run ends: those that are still held were so until then.
  void close(FleetTime now);

 private:
  struct Held {
    FleetTime from;          // the latest end so far, with its time to think
    std::uint32_t open = 0;  // jobs that have not ended
    bool submitted = false, doomed = false, through = false;
  };
  void cancel(std::uint32_t job, FleetTime now);
  void settle(FleetTime now);

  using Ready = std::pair<FleetTime, std::uint32_t>;  // from, job
  const ClusterJobs& list_;
  FleetState& state_;
  std::optional<Dependants> dependants_;
  std::vector<Held> held_;                            // by job; empty where nobody is held
  std::vector<std::pair<std::uint32_t, bool>> over_;  // whether it completed
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
};

}  // namespace orrery
