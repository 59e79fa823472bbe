// SPDX-License-Identifier: Apache-2.0
// Steps from instant to instant: ends, repairs, what breaks, submissions, decisions.
#include "sim/engine/cluster/fleet_run.h"

#include <algorithm>
#include <memory>

#include "sim/engine/decisions/conservative_loop.h"
#include "sim/engine/decisions/defragment_pass.h"
#include "sim/engine/decisions/delay_gate.h"
#include "sim/engine/decisions/easy_pass.h"
#include "sim/engine/decisions/preempt_pass.h"
#include "sim/engine/decisions/quota_gate.h"
#include "sim/engine/decisions/round_loop.h"
#include "sim/engine/decisions/service_queues.h"
#include "sim/engine/decisions/slurm_loops.h"
#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/fleet/fleet_timeline.h"
#include "sim/engine/fleet/power_room.h"
#include "sim/engine/fleet/trunk_meetings.h"
#include "sim/engine/fleet/wait_teller.h"
#include "sim/engine/losses/breakdown_pass.h"
#include "sim/engine/losses/host_stock.h"
#include "sim/engine/losses/incident_pass.h"
#include "sim/engine/losses/own_stops.h"
#include "sim/engine/losses/power_hours.h"
#include "sim/engine/losses/store_pass.h"

namespace orrery {
namespace {

constexpr std::uint64_t events_between_looks = 4096;

GpuMicros times(std::int64_t amount, FleetTime time) {
  return static_cast<GpuMicros>(amount) * static_cast<GpuMicros>(time.us);
}

// What the accelerators do for so long; `scattered`: some are free and the head has no place.
void count(FleetRecord& record, const FleetState& state, std::int64_t spare, FleetTime passed,
           bool scattered) {
  record.power.nanojoules += times(state.power().drawn(), passed);
  if (state.power().is_over() || state.feeds().is_over()) record.power.over += passed;
  FleetUse& use = record.use;
  const Slots& slots = state.slots();
  use.all += times(slots.total(), passed);
  use.held += times(slots.held(), passed);
  use.spare += times(spare, passed);
  use.repair += times(slots.out() - spare, passed);
  const bool waits = !state.waiting().empty();
  (scattered ? use.scattered : waits ? use.short_of : use.idle) += times(slots.free(), passed);
}

void add_hours(FleetRecord& record, const FleetState& state, FleetTime from, FleetTime passed) {
  add_energy(record.power.hours, from, passed, state.power().drawn());
}

// The head asks for no more than is free, and has no place.
bool is_scattered(const FleetState& state) {
  return !state.waiting().empty() && state.waiting().head().gpus <= state.slots().free();
}

TimelinePart part_of(const FleetState& state, std::int64_t spare) {
  const Slots& slots = state.slots();
  const bool waits = !state.waiting().empty();
  return {.held = slots.held(),
          .blocked = waits ? slots.free() : 0,
          .idle = waits ? 0 : slots.free(),
          .spare = spare,
          .repair = slots.out() - spare,
          .waiting = static_cast<GpuMicros>(state.waiting().size()),
          .milliwatts = state.power().drawn()};
}

// After the decisions of an instant.
void note(FleetRecord& record, const FleetState& state) {
  record.power.most_milliwatts = std::max(record.power.most_milliwatts, state.power().drawn());
  ++record.events;
}

// What a state holds once its run is over.
void take(FleetState& state, FleetRecord& record) {
  record.use.work = state.spent;
  record.sized = state.sized_uses();
  record.most_waiting = static_cast<std::int64_t>(state.waiting().most());
  record.jobs = std::move(state.records);
}

// Tells how far it is, and asks whether to go on.
bool is_stopped(const FleetQuestion& question, FleetTime now, std::size_t waiting) {
  if (question.reached) question.reached(now, static_cast<std::int64_t>(waiting));
  return question.stop && question.stop(now);
}

// Where it is other than was told before.
void tell_power(const FleetQuestion& question, FleetTime now, std::int64_t drawn,
                std::int64_t& told) {
  if (!question.tell || drawn == told) return;
  told = drawn;
  question.tell({.at = now, .kind = FleetEventKind::power, .milliwatts = drawn});
}

// None: it decides at each instant.
std::unique_ptr<DecisionLoop> loop_of(FleetState& state, const FleetQuestion& question) {
  if (question.policy.fit == JobFit::slurm) return std::make_unique<SlurmLoops>(state, question);
  if (question.policy.fit == JobFit::rounds) return std::make_unique<RoundLoop>(state, question);
  if (question.policy.fit == JobFit::conservative)
    return std::make_unique<ConservativeLoop>(state, question);
  return nullptr;
}

class FleetRun {
 public:
  FleetRun(const ClusterJobs& list, const FleetQuestion& question)
      : jobs_(list.jobs),
        question_(question),
        state_(jobs_, question),
        easy_(state_, question.policy.fit == JobFit::any),
        teller_(state_, question.watch),
        hosts_(state_, question),
        breakdowns_(state_, hosts_, question),
        incidents_(state_, hosts_, question),
        own_stops_(state_, question.seed),
        power_hours_(state_, question),
        meetings_(state_, question),
        store_(state_, question),
        preempt_(state_, question),
        defragment_(state_, question),
        delays_(state_, question),
        quotas_(state_, question),
        feeds_(state_, question),
        services_(state_, question),
        loop_(loop_of(state_, question)),
        ramps_(state_.power().drawn()) {}

  FleetRecord run() {
    while (true) {
      read_until_next_event();
      const FleetTime at = next_event();
      record_.cut = at >= question_.horizon && question_.horizon != fleet_never;
      if (record_.cut) pass_to(question_.horizon);
      if (at >= question_.horizon) break;
      pass_to(at);
      happen();
      loop_ ? loop_->wake(now_) : decide();
      services_.settle(now_);
      incidents_.look(now_);
      teller_.look();
      if (state_.settle_power(now_)) easy_.forget();
      if (meetings_.settle(now_)) easy_.forget();
      if (store_.settle(now_)) easy_.forget();
      note(record_, state_);
      ramps_.draw(now_, state_.power().drawn());
      tell_power(question_, now_, state_.power().drawn(), told_);
      if (question_.look) question_.look(now_, state_.slots());
      if (record_.events % events_between_looks != 0 && !loop_) continue;
      record_.stopped = is_stopped(question_, now_, state_.waiting().size());
      if (record_.stopped) break;
    }
    state_.close(now_);
    take(state_, record_);
    record_.timeline = timeline_.take();
    record_.power.ramps = ramps_.most();
    record_.power.suspended = power_hours_.suspended();
    record_.breakdowns = breakdowns_.counts();
    record_.reads = store_.counts();
    record_.incidents = incidents_.take_counts(now_);
    if (question_.watch) record_.story = teller_.story.value_or(WaitStory{});
    record_.last_end = now_;
    return std::move(record_);
  }

 private:
  // fleet_never once all is over, or nobody who waits will ever have a place.
  FleetTime next_event() const {
    const FleetTime arrival = next_ < jobs_.size() ? jobs_[next_].submit : fleet_never;
    FleetTime at =
        std::min({arrival, delays_.next(), state_.next_end(), loop_ ? loop_->next() : fleet_never});
    if (!state_.waiting().empty()) at = std::min(at, power_hours_.next());
    if (!state_.waiting().empty() || question_.horizon != fleet_never)
      at = std::min({at, breakdowns_.next_repair(), incidents_.next()});
    if (at == fleet_never) return at;
    return std::min({at, breakdowns_.next_repair(), breakdowns_.next_breakdown(), incidents_.next(),
                     own_stops_.next(), power_hours_.next(), services_.next()});
  }

  // Reads begin and end where nothing is decided, and move ends of jobs.
  void read_until_next_event() {
    while (store_.next() != fleet_never &&
           store_.next() < std::min(next_event(), question_.horizon))
      if (store_.settle(store_.next())) easy_.forget();
  }

  void happen() {
    bool changed = state_.end_jobs(now_);
    changed = breakdowns_.repair_until(now_) || changed;
    changed = breakdowns_.break_until(now_) || changed;
    changed = incidents_.happen_until(now_) || changed;
    changed = own_stops_.stop_until(now_) || changed;
    changed = power_hours_.change_until(now_) || changed;
    services_.settle(now_);
    changed = services_.move_until(now_) || changed;
    if (loop_) loop_->settle(changed);
    quotas_.settle();
    if (changed) easy_.forget();
    submit_jobs();
  }

  void pass_to(FleetTime at) {
    const FleetTime passed = at - now_;
    now_ = at;
    if (passed.us == 0) return;
    const bool scattered = is_scattered(state_);
    count(record_, state_, hosts_.spare_gpus(), passed, scattered);
    if (question_.hours.energy) add_hours(record_, state_, now_ - passed, passed);
    timeline_.add(now_ - passed, passed, part_of(state_, hosts_.spare_gpus()));
    teller_.pass(passed, scattered);
  }

  void submit_jobs() {
    for (; next_ < jobs_.size() && jobs_[next_].submit <= now_; ++next_) {
      const auto number = static_cast<std::uint32_t>(next_);
      if (jobs_[next_].gpus > hosts_.most_gpus() || !state_.could_have_power(number) ||
          !feeds_.admits(number) || !quotas_.admits(number)) {
        state_.records[next_].rejected = true;
        state_.tell(FleetEventKind::reject, now_, number);
        continue;
      }
      state_.tell(FleetEventKind::submit, now_, number);
      teller_.submit(number);
      own_stops_.submit(number, now_);
      if (delays_.hold(number, now_))
        teller_.hold(number);
      else
        queue_up(number);
    }
    while (delays_.next() <= now_) {
      const std::uint32_t number = delays_.take();
      teller_.release(number);
      queue_up(number);
    }
  }

  void queue_up(std::uint32_t number) {
    quotas_.submit(number);
    if (loop_) loop_->submit(number);
  }

  void decide() {
    WaitingList& waiting = state_.waiting();
    while (!waiting.empty()) {
      if (!state_.find(waiting.head().job, found_)) {
        const bool room = (question_.policy.defragments && defragment_.make_room(now_)) ||
                          (question_.policy.preempts && preempt_.make_room(now_));
        if (!room) break;
        continue;  // there is a place now
      }
      state_.begin_waiting_job(waiting.head().job, now_, found_);
      easy_.forget();  // another that came in front takes of what was promised
    }
    if (question_.policy.fit != JobFit::block) easy_.decide(now_);
    if (question_.policy.defragments && defragment_.improve(now_)) easy_.forget();
  }

  const std::vector<ClusterJob>& jobs_;
  const FleetQuestion& question_;
  FleetState state_;
  EasyPass easy_;
  WaitTeller teller_;
  FleetTimelineMaker timeline_;
  HostStock hosts_;
  BreakdownPass breakdowns_;
  IncidentPass incidents_;
  OwnStops own_stops_;
  PowerHours power_hours_;
  TrunkMeetings meetings_;
  StorePass store_;
  PreemptPass preempt_;
  DefragmentPass defragment_;
  DelayGate delays_;
  QuotaGate quotas_;
  FeedGate feeds_;
  ServiceQueues services_;
  std::unique_ptr<DecisionLoop> loop_;
  FleetTime now_;
  std::size_t next_ = 0;
  Grants found_;
  std::int64_t told_ = -1;  // of power
  RampWatches ramps_;
  FleetRecord record_;
};

}  // namespace

FleetRecord run_fleet(const ClusterJobs& jobs, const FleetQuestion& question) {
  return FleetRun(jobs, question).run();
}

}  // namespace orrery
