// SPDX-License-Identifier: Apache-2.0
// Holds what decides who waits and who starts on a cluster, by the rule of its question.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/decisions/deadline_pass.h"
#include "sim/engine/decisions/defragment_pass.h"
#include "sim/engine/decisions/delay_gate.h"
#include "sim/engine/decisions/easy_pass.h"
#include "sim/engine/decisions/preempt_pass.h"
#include "sim/engine/decisions/quota_gate.h"
#include "sim/engine/decisions/service_queues.h"
#include "sim/engine/fleet/power_room.h"
#include "sim/engine/jobs/decision_loop.h"

namespace orrery {

class FleetDecisions {
 public:
  // Both must outlive it.
  FleetDecisions(FleetState& state, const FleetQuestion& question);
  // When a job that was kept back comes, or a rule that decides at times of its own does.
  FleetTime next() const;
  FleetTime next_service() const { return services_.next(); }
  bool has_own_times() const { return loop_ != nullptr; }
  // Whether a job may ever start, but for its size.
  bool admits(std::uint32_t job) { return feeds_.admits(job) && quotas_.admits(job); }
  // A job comes; false: it is kept back for a better hour.
  bool submit(std::uint32_t job, FleetTime now);
  // Those that were kept back until now come; in order of time.
  std::vector<std::uint32_t> release_until(FleetTime now);
  // After what ended, broke and came back: `changed` if any did; before submissions.
  void settle(FleetTime now, bool changed);
  void decide(FleetTime now);
  // Jobs end at other times than was thought: what was promised may come sooner.
  void forget() { easy_.forget(); }

 private:
  void queue_up(std::uint32_t job);
  void start_heads(FleetTime now);
  bool stop_others(FleetTime now);

  FleetState& state_;
  const FleetPolicy& policy_;
  EasyPass easy_;
  PreemptPass preempt_;
  DeadlinePass deadlines_;
  DefragmentPass defragment_;
  DelayGate delays_;
  QuotaGate quotas_;
  FeedGate feeds_;
  ServiceQueues services_;
  std::unique_ptr<DecisionLoop> loop_;  // none: it decides at each instant
  Grants found_;
};

}  // namespace orrery
