// SPDX-License-Identifier: Apache-2.0
// Counts for each job how many of those that it comes after have not ended.
#include "sim/engine/cluster/dependency_gate.h"

#include <algorithm>

namespace orrery {

DependencyGate::DependencyGate(const ClusterJobs& list, FleetState& state)
    : list_(list), state_(state) {
  if (list.dependencies.empty()) return;
  dependants_.emplace(list);
  held_.resize(list.jobs.size());
  for (const JobDependency& one : list.dependencies) ++held_[one.job].open;
}

bool DependencyGate::submit(std::uint32_t job, FleetTime now) {
  if (is_open()) return true;
  Held& held = held_[job];
  held.submitted = true;
  if (held.doomed) {
    cancel(job, now);
    settle(now);
    return false;
  }
  held.through = !holds(job, now);
  if (held.open == 0 && !held.through) ready_.emplace(held.from, job);
  return held.through;
}

void DependencyGate::end(std::uint32_t job, bool completed, FleetTime now) {
  if (is_open()) return;
  over_.emplace_back(job, completed);
  settle(now);
}

// One after another, for chains may be long.
void DependencyGate::settle(FleetTime now) {
  for (std::size_t i = 0; i < over_.size(); ++i) {
    const auto [job, completed] = over_[i];
    for (const std::uint32_t place : dependants_->of(job)) {
      const JobDependency& one = dependants_->at(place);
      Held& held = held_[one.job];
      --held.open;
      held.from = std::max(held.from, now + one.think);
      if (!one.any && !completed && !held.doomed) {
        held.doomed = true;
        if (held.submitted) cancel(one.job, now);
      }
      if (held.open == 0 && held.submitted && !held.doomed) ready_.emplace(held.from, one.job);
    }
  }
  over_.clear();
}

void DependencyGate::cancel(std::uint32_t job, FleetTime now) {
  state_.records[job].cancelled = true;
  state_.records[job].held = now - list_.jobs[job].submit;
  state_.tell(FleetEventKind::cancel, now, job);
  over_.emplace_back(job, false);
}

std::optional<std::uint32_t> DependencyGate::take(FleetTime now) {
  if (next() > now) return std::nullopt;
  const std::uint32_t job = ready_.top().second;
  ready_.pop();
  held_[job].through = true;
  state_.records[job].held = now - list_.jobs[job].submit;
  state_.tell(FleetEventKind::eligible, now, job);
  return job;
}

void DependencyGate::close(FleetTime now) {
  for (std::uint32_t job = 0; job < held_.size(); ++job) {
    if (!held_[job].submitted || held_[job].through || held_[job].doomed) continue;
    state_.records[job].still_held = true;
    state_.records[job].held = now - list_.jobs[job].submit;
  }
}

}  // namespace orrery
