// SPDX-License-Identifier: Apache-2.0
// Steps from instant to instant: ends, repairs, what breaks, submissions, decisions.
#include "sim/engine/fleet/fleet_run.h"

#include <algorithm>

#include "sim/engine/fleet/breakdown_pass.h"
#include "sim/engine/fleet/easy_pass.h"
#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/fleet/own_stops.h"

namespace orrery {
namespace {

constexpr std::uint64_t events_between_looks = 4096;

class FleetRun {
 public:
  FleetRun(const ClusterJobs& list, const FleetQuestion& question)
      : jobs_(list.jobs),
        question_(question),
        state_(jobs_, question),
        easy_(state_),
        breakdowns_(state_, question),
        own_stops_(state_, question.seed) {
    if (question.watch) record_.story.emplace();
    most_gpus_ = state_.slots().total() - breakdowns_.spare_gpus();
  }

  FleetRecord run() {
    while (true) {
      const FleetTime at = next_event();
      if (at == fleet_never) break;
      pass_to(at);
      happen();
      decide();
      record_.power.most_milliwatts = std::max(record_.power.most_milliwatts, state_.milliwatts());
      ++record_.events;
      if (question_.look) question_.look(now_, state_.slots());
      if (question_.stop && record_.events % events_between_looks == 0 && question_.stop(now_)) {
        record_.stopped = true;
        break;
      }
    }
    state_.close(now_);
    record_.use.work = state_.spent;
    record_.breakdowns = breakdowns_.counts();
    record_.last_end = now_;
    record_.jobs = std::move(state_.records);
    return std::move(record_);
  }

 private:
  // fleet_never once all is over, or nobody who waits will ever have a place.
  FleetTime next_event() const {
    const FleetTime arrival = next_ < jobs_.size() ? jobs_[next_].submit : fleet_never;
    FleetTime at = std::min(arrival, state_.next_end());
    if (!state_.waiting().empty()) at = std::min(at, breakdowns_.next_repair());
    if (at == fleet_never) return at;
    return std::min(
        {at, breakdowns_.next_repair(), breakdowns_.next_breakdown(), own_stops_.next()});
  }

  void happen() {
    bool changed = state_.end_jobs(now_);
    changed = breakdowns_.repair_until(now_) || changed;
    changed = breakdowns_.break_until(now_) || changed;
    changed = own_stops_.stop_until(now_) || changed;
    if (changed) easy_.forget();
    submit_jobs();
  }

  void pass_to(FleetTime at) {
    const FleetTime passed = at - now_;
    now_ = at;
    if (passed.us == 0) return;
    const Slots& slots = state_.slots();
    const auto times = [&](std::int64_t gpus) {
      return static_cast<GpuMicros>(gpus) * static_cast<GpuMicros>(passed.us);
    };
    FleetUse& use = record_.use;
    use.all += times(slots.total());
    use.held += times(slots.held());
    use.spare += times(breakdowns_.spare_gpus());
    use.repair += times(slots.out() - breakdowns_.spare_gpus());
    record_.power.nanojoules += times(state_.milliwatts());
    const bool waits = !state_.waiting().empty();
    const bool scattered = waits && state_.waiting().head().gpus <= slots.free();
    (scattered ? use.scattered : waits ? use.short_of : use.idle) += times(slots.free());
    if (watching_) tell(passed, scattered);
  }

  // How the job that is watched passes the time.
  void tell(FleetTime passed, bool scattered) {
    WaitStory& story = *record_.story;
    const std::uint32_t head = state_.waiting().head().job;
    if (head == *question_.watch) {
      (scattered ? story.scattered : story.short_of) += passed;
      return;
    }
    story.behind += passed;
    if (story.heads.empty() || story.heads.back().job != head) story.heads.push_back({head, {}});
    story.heads.back().time += passed;
  }

  void submit_jobs() {
    for (; next_ < jobs_.size() && jobs_[next_].submit <= now_; ++next_) {
      const ClusterJob& job = jobs_[next_];
      const auto number = static_cast<std::uint32_t>(next_);
      if (job.gpus > most_gpus_ || !state_.could_have_power(number)) {
        state_.records[next_].rejected = true;
        continue;
      }
      if (question_.watch == number) {
        watching_ = true;
        record_.story->ahead = static_cast<std::uint32_t>(state_.waiting().size());
        record_.story->free_then = state_.slots().free();
      }
      state_.wait(number);
      own_stops_.submit(number, now_);
    }
    record_.most_waiting =
        std::max(record_.most_waiting, static_cast<std::int64_t>(state_.waiting().size()));
  }

  void decide() {
    WaitingList& waiting = state_.waiting();
    while (!waiting.empty() && state_.find(waiting.head().job, found_)) {
      const std::uint32_t number = waiting.head().job;
      waiting.pop_head();
      state_.start(number, now_, found_);
      easy_.forget();  // another that came in front takes of what was promised
    }
    if (question_.policy.fit == JobFit::easy) easy_.decide(now_);
    if (watching_ && state_.records[*question_.watch].start != fleet_never) watching_ = false;
  }

  const std::vector<ClusterJob>& jobs_;
  const FleetQuestion& question_;
  FleetState state_;
  EasyPass easy_;
  BreakdownPass breakdowns_;
  OwnStops own_stops_;
  std::int64_t most_gpus_ = 0;  // that a job may ask for
  bool watching_ = false;
  FleetTime now_;
  std::size_t next_ = 0;
  Grants found_;
  FleetRecord record_;
};

}  // namespace

FleetRecord run_fleet(const ClusterJobs& jobs, const FleetQuestion& question) {
  return FleetRun(jobs, question).run();
}

}  // namespace orrery
