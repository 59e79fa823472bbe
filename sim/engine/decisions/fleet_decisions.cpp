// SPDX-License-Identifier: Apache-2.0
// Lets each rule have its turn.
#include "sim/engine/decisions/fleet_decisions.h"

#include <algorithm>

#include "sim/engine/decisions/conservative_loop.h"
#include "sim/engine/decisions/gang_loop.h"
#include "sim/engine/decisions/round_loop.h"
#include "sim/engine/decisions/slurm_loops.h"

namespace orrery {
namespace {

// None: it decides at each instant.
std::unique_ptr<DecisionLoop> loop_of(FleetState& state, const FleetQuestion& question) {
  if (question.policy.fit == JobFit::slurm) return std::make_unique<SlurmLoops>(state, question);
  if (question.policy.fit == JobFit::rounds) return std::make_unique<RoundLoop>(state, question);
  if (question.policy.fit == JobFit::gang_timeout)
    return std::make_unique<GangLoop>(state, question);
  if (question.policy.fit == JobFit::conservative)
    return std::make_unique<ConservativeLoop>(state, question);
  return nullptr;
}

}  // namespace

FleetDecisions::FleetDecisions(FleetState& state, const FleetQuestion& question)
    : state_(state),
      policy_(question.policy),
      easy_(state, question.policy.fit == JobFit::any),
      preempt_(state, question),
      deadlines_(state, question),
      defragment_(state, question),
      delays_(state, question),
      quotas_(state, question),
      feeds_(state, question),
      services_(state, question),
      loop_(loop_of(state, question)) {}

FleetTime FleetDecisions::next() const {
  return std::min(delays_.next(), loop_ ? loop_->next() : fleet_never);
}

bool FleetDecisions::submit(std::uint32_t job, FleetTime now) {
  if (delays_.hold(job, now)) return false;
  queue_up(job);
  return true;
}

std::vector<std::uint32_t> FleetDecisions::release_until(FleetTime now) {
  std::vector<std::uint32_t> jobs;
  while (delays_.next() <= now) {
    jobs.push_back(delays_.take());
    queue_up(jobs.back());
  }
  return jobs;
}

void FleetDecisions::queue_up(std::uint32_t job) {
  quotas_.submit(job);
  if (loop_) loop_->submit(job);
}

void FleetDecisions::settle(FleetTime now, bool changed) {
  services_.settle(now);
  changed = services_.move_until(now) || changed;
  if (loop_) loop_->settle(changed);
  quotas_.settle();
  if (changed) easy_.forget();
}

void FleetDecisions::decide(FleetTime now) {
  if (loop_) {
    loop_->wake(now);
  } else {
    start_heads(now);
    if (policy_.fit != JobFit::block) easy_.decide(now);
    // Meanwhile nobody moves to a place that is promised.
    const bool moves = policy_.defragments && state_.saves().empty();
    if (moves && defragment_.improve(now)) easy_.forget();
  }
  services_.settle(now);
}

// For a head that has no place.
bool FleetDecisions::stop_others(FleetTime now) {
  if (policy_.grace) easy_.forget();  // whoever saves leaves before its limit
  return policy_.order == JobOrder::deadline ? deadlines_.make_room(now) : preempt_.make_room(now);
}

void FleetDecisions::start_heads(FleetTime now) {
  WaitingList& waiting = state_.waiting();
  while (!waiting.empty()) {
    if (!state_.find(waiting.head().job, found_)) {
      const bool room = (policy_.defragments && defragment_.make_room(now)) ||
                        (policy_.preempts && stop_others(now));
      if (!room) return;
      continue;  // there is a place now
    }
    state_.begin_waiting_job(waiting.head().job, now, found_);
    easy_.forget();  // another that came in front takes of what was promised
  }
}

}  // namespace orrery
