// SPDX-License-Identifier: Apache-2.0
// Keeps jobs that were stopped back until they may start again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "sim/engine/jobs/policy.h"

namespace orrery {

// How long the n-th stop of a row keeps a job back, n from 1.
FleetTime requeue_delay(const RequeueDelay& rule, std::int32_t n);

// A run twice as long as the longest delay ends a row of stops: so long after it a kubelet forgets
// that a container crashed (kubernetes.io, pod lifecycle: 10 minutes where the most is 5).
class RequeueHolds {
 public:
  explicit RequeueHolds(const RequeueDelay& rule) : rule_(rule) {}
  // A job is stopped after a run of so long; whether it is kept back.
  bool hold(std::uint32_t job, FleetTime now, FleetTime ran);
  bool holds(std::uint32_t job) const { return until_.contains(job); }
  FleetTime next() const { return order_.empty() ? fleet_never : order_.begin()->first; }
  // The next one whose time has come, of equals the one with the lower place in the list; there is
  // one: next() is not after now.
  std::uint32_t take();

 private:
  RequeueDelay rule_;
  std::map<std::uint32_t, FleetTime> until_;
  std::set<std::pair<FleetTime, std::uint32_t>> order_;
  std::unordered_map<std::uint32_t, std::int32_t> rows_;  // stops in a row
};

}  // namespace orrery
