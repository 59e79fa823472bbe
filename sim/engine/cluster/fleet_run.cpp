// SPDX-License-Identifier: Apache-2.0
// Steps from instant to instant: ends, repairs, what breaks, submissions, decisions.
#include "sim/engine/cluster/fleet_run.h"

#include <algorithm>

#include "sim/engine/cluster/dependency_gate.h"
#include "sim/engine/cluster/fleet_tally.h"
#include "sim/engine/decisions/fleet_decisions.h"
#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/fleet/part_speeds.h"
#include "sim/engine/fleet/trunk_meetings.h"
#include "sim/engine/losses/fleet_losses.h"
#include "sim/engine/losses/store_pass.h"

namespace orrery {
namespace {

constexpr std::uint64_t events_between_looks = 4096;

// Tells how far it is, and asks whether to go on.
bool is_stopped(const FleetQuestion& question, FleetTime now, std::size_t waiting) {
  if (question.reached) question.reached(now, static_cast<std::int64_t>(waiting));
  return question.stop && question.stop(now);
}

class FleetRun {
 public:
  FleetRun(const ClusterJobs& list, const FleetQuestion& question)
      : jobs_(list.jobs),
        question_(question),
        state_(jobs_, question),
        gate_(list, state_),
        tally_(state_, question),
        losses_(state_, question),
        meetings_(state_, question),
        parts_(state_, question),
        store_(state_, question),
        decisions_(state_, question) {}

  FleetRecord run() {
    while (true) {
      read_until_next_event();
      const FleetTime at = next_event();
      cut_ = at >= question_.horizon && question_.horizon != fleet_never;
      if (cut_) pass_to(question_.horizon);
      if (at >= question_.horizon) break;
      pass_to(at);
      happen();
      decisions_.decide(now_);
      losses_.look(now_);
      tally_.teller().look();
      if (state_.settle_power(now_)) decisions_.forget();
      if (meetings_.settle(now_)) decisions_.forget();
      if (parts_.settle(now_)) decisions_.forget();
      if (store_.settle(now_)) decisions_.forget();
      tally_.note(now_);
      if (question_.look) question_.look(now_, state_.slots());
      if (tally_.events() % events_between_looks != 0 && !decisions_.has_own_times()) continue;
      stopped_ = is_stopped(question_, now_, state_.waiting().size());
      if (stopped_) break;
    }
    gate_.close(now_);
    state_.close(now_);
    FleetRecord record = tally_.take(now_);
    record.cut = cut_;
    record.stopped = stopped_;
    record.reads = store_.counts();
    losses_.take(now_, record);
    return record;
  }

 private:
  // fleet_never once all is over, or nobody who waits will ever have a place.
  FleetTime next_event() const {
    const FleetTime arrival = next_ < jobs_.size() ? jobs_[next_].submit : fleet_never;
    FleetTime at = std::min(
        {arrival, state_.next_end(), decisions_.next(), state_.next_return(), gate_.next()});
    if (!state_.waiting().empty()) at = std::min(at, losses_.next_limit());
    if (!state_.waiting().empty() || question_.horizon != fleet_never)
      at = std::min(at, losses_.next_return());
    if (at == fleet_never) return at;
    return std::min({at, losses_.next(), decisions_.next_service()});
  }

  // Reads begin and end where nothing is decided, and move ends of jobs.
  void read_until_next_event() {
    while (store_.next() != fleet_never &&
           store_.next() < std::min(next_event(), question_.horizon))
      if (store_.settle(store_.next())) decisions_.forget();
  }

  void happen() {
    bool changed = state_.end_jobs(now_);
    for (const std::uint32_t job : state_.ended)
      gate_.end(job, jobs_[job].fate == JobFate::completed, now_);
    changed = losses_.happen_until(now_) || changed;
    changed = state_.return_until(now_) || changed;
    decisions_.settle(now_, changed);
    let_in_dependants();
    for (; next_ < jobs_.size() && jobs_[next_].submit <= now_; ++next_)
      submit(static_cast<std::uint32_t>(next_));
    let_in_dependants();  // of such as were rejected
    for (const std::uint32_t job : decisions_.release_until(now_)) tally_.teller().release(job);
  }

  void let_in_dependants() {
    while (const auto job = gate_.take(now_)) let_in(*job);
  }

  void pass_to(FleetTime at) {
    const FleetTime passed = at - now_;
    now_ = at;
    if (passed.us == 0) return;
    tally_.pass(now_ - passed, passed, losses_.hosts().spare_gpus());
  }

  void submit(std::uint32_t job) {
    if (jobs_[job].gpus > losses_.hosts().most_gpus() || !state_.could_stand(job) ||
        !state_.could_have_power(job) || !decisions_.admits(job)) {
      state_.records[job].rejected = true;
      state_.tell(FleetEventKind::reject, now_, job);
      gate_.end(job, false, now_);
      return;
    }
    state_.tell(FleetEventKind::submit, now_, job, gate_.holds(job, now_) ? "dependency" : "");
    if (gate_.submit(job, now_)) let_in(job);
  }

  // A job that may start from now on.
  void let_in(std::uint32_t job) {
    tally_.teller().submit(job);
    losses_.submit(job, now_);
    if (!decisions_.submit(job, now_)) tally_.teller().hold(job);
  }

  const std::vector<ClusterJob>& jobs_;
  const FleetQuestion& question_;
  FleetState state_;
  DependencyGate gate_;
  FleetTally tally_;
  FleetLosses losses_;
  TrunkMeetings meetings_;
  PartSpeeds parts_;
  StorePass store_;
  FleetDecisions decisions_;
  FleetTime now_;
  std::size_t next_ = 0;
  bool cut_ = false, stopped_ = false;  // by the horizon, by whoever asked
};

}  // namespace

FleetRecord run_fleet(const ClusterJobs& jobs, const FleetQuestion& question) {
  return FleetRun(jobs, question).run();
}

}  // namespace orrery
