// SPDX-License-Identifier: Apache-2.0
// Holds a shared cluster at one instant: what is free, who runs, who waits.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "sim/engine/fleet/fleet_question.h"
#include "sim/engine/fleet/fleet_record.h"
#include "sim/engine/fleet/gang_parts.h"
#include "sim/engine/fleet/requeue_holds.h"
#include "sim/engine/fleet/shared_gpus.h"
#include "sim/engine/jobs/job_ranks.h"
#include "sim/engine/jobs/job_run.h"
#include "sim/engine/jobs/placer.h"
#include "sim/engine/jobs/running_ends.h"
#include "sim/engine/jobs/waiting_list.h"
#include "sim/engine/power/feed_budget.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// A job that was stopped for others and saves: it holds its place, and computes nothing.
struct HeldSave {
  FleetTime stops, until;
  std::string_view cause;
};

// What a stop for others does to a job.
struct StopCost {
  FleetTime stops, leaves;  // it computes no more; it gives its place back
  std::int64_t kept = 0;    // steps
  FleetTime again;          // that it takes longer as it starts again
};

struct JobClocks {
  std::vector<FleetTime> promised_ends = {};     // that the scheduler expects
  std::vector<FleetTime> queued = {};            // when a job that is to start again was stopped
  std::vector<FleetTime> turns = {};             // gang_timeout: since when it waits, for its turn
  RequeueHolds held;                             // that were stopped and do not wait yet
  std::map<std::uint32_t, HeldSave> saves = {};  // by job
  GangParts gangs = {};

  // Whoever holds its place to save computes no more.
  FleetTime computes_until(std::uint32_t job, FleetTime now) const;
};

struct ListedJobs {
  std::vector<std::uint32_t> begun, left;
};

struct HoldingChange {
  std::uint32_t job = 0;
  bool holds = false;
};

// A job reads from `at` on, were it alone, or reads no more (no time). Newer ones hold.
struct ReadAsked {
  std::uint32_t job = 0;
  FleetTime at;
  StoreRead read;
};

struct StoreAsks {
  std::vector<ReadAsked> asked;
  std::map<std::uint32_t, StoreRead> later;  // as jobs that were stopped start again
};

struct ClusterPower {
  ClusterPower(const std::vector<ClusterJob>& jobs, const FleetQuestion& question,
               std::int64_t gpus);
  PowerBudget all;
  FeedBudget feeds;
};

struct SizedJobs {
  std::vector<ClusterJob> now;  // all, as they are now; empty where no size changes
  std::map<std::uint32_t, SizedUse> uses;
};

struct HostedJobs {
  std::vector<std::vector<std::uint32_t>> by_host = {};
  SharedGpus shared;
};

class FleetState {
 public:
  // Both must outlive it.
  FleetState(const std::vector<ClusterJob>& jobs, const FleetQuestion& question);

  const Slots& slots() const { return slots_; }
  Slots& slots() { return slots_; }
  bool is_pool() const { return pool_; }  // only the number of accelerators counts
  WaitingList& waiting() { return waiting_; }
  const WaitingList& waiting() const { return waiting_; }
  const RunningEnds& ends() const { return ends_; }
  FleetTime next_end() const { return ends_.empty() ? fleet_never : ends_.first().at; }
  // Running jobs by the ends that the scheduler expects: their limits, or later ends that they
  // have.
  const RunningEnds& promised() const { return exact_ ? ends_ : limits_; }
  const Grants& grants_of(std::uint32_t job) const { return grants_[job]; }
  // Jobs that hold accelerators of a host, in no order. Only where something breaks or
  // jobs move.
  const std::vector<std::uint32_t>& jobs_on(std::int32_t host) const;
  const JobWork& work_of(std::uint32_t job) const { return question_.works[jobs_[job].work]; }
  const ClusterJob& job(std::uint32_t number) const { return jobs_[number]; }
  // Of the shape, under one group of which it must stand; no_level: anywhere.
  std::int32_t level_of(std::uint32_t job) const;
  // One group of that level is large enough.
  bool could_stand(std::uint32_t job) const;
  // It has begun and has not been stopped; ends of before `now` were counted.
  bool is_running(std::uint32_t job) const { return records[job].end != fleet_never; }
  bool is_over(std::uint32_t job, FleetTime now) const { return records[job].end <= now; }

  const PowerBudget& power() const { return power_.all; }
  PowerBudget& power() { return power_.all; }
  const FeedBudget& feeds() const { return power_.feeds; }
  FeedBudget& feeds() { return power_.feeds; }
  // That must be there: drawn if all were at their least caps; what a job adds to that.
  std::int64_t milliwatts() const { return power_.all.least(); }
  std::int64_t extra_milliwatts(std::uint32_t job) const;
  bool draws_part(std::uint32_t job) const;  // of what its accelerator would
  PowerUser power_user(std::uint32_t job) const { return {jobs_[job].work, jobs_[job].priority}; }
  bool has_power(std::int64_t milliwatts) const { return power_.all.has(milliwatts); }
  // Alone on the cluster it passes no limit.
  bool could_have_power(std::uint32_t job) const;
  // Gives all that run their caps; whether a speed changed. Those that share links get theirs as
  // they meet.
  bool settle_power(FleetTime now);
  // What the cap of a job adds to so many picoseconds of its steps.
  std::int64_t capped_ps(std::uint32_t job, std::int64_t step_ps) const;

  WaitingJob waiting_job(std::uint32_t job) const;  // as it stands in the list
  // Puts a job into the list.
  void wait(std::uint32_t job);
  // When a job that was stopped and kept back waits again; lets all do so whose time has come by
  // now: whether there were some.
  FleetTime next_return() const { return clocks_.held.next(); }
  bool return_until(FleetTime now);
  bool is_kept_back(std::uint32_t job) const { return clocks_.held.holds(job); }
  // A gang that waits goes behind all others of its key, or is kept back first.
  void go_behind(std::uint32_t job, FleetTime now);
  GangParts& gangs() { return clocks_.gangs; }
  const GangParts& gangs() const { return clocks_.gangs; }
  // A place for a job that waits, by the rule; false: there is none now. Of a part that joins
  // others on a shared accelerator the place has a host and no accelerators of its own.
  bool find(std::uint32_t job, Grants& out);
  // By which it is found; whoever plans by itself has one of its own like that.
  const Placer& placer() const { return placer_; }
  // Before anybody has one.
  void set_judge(PlaceJudge& judge) { placer_.set_judge(judge); }
  const SharedGpus& shared() const { return hosted_.shared; }
  SharedGpus& shared() { return hosted_.shared; }
  // It asks for a part, and may share an accelerator.
  bool shares(std::uint32_t job) const { return hosted_.shared.share() && jobs_[job].is_part(); }
  // The accelerator on which it is, or would be on a place that was just found.
  std::uint64_t gpu_for(std::uint32_t job, const Grants& place) const;
  // All jobs on that of one that runs; itself alone, if it shares none.
  std::vector<std::uint32_t> together_with(std::uint32_t job) const;
  // So many accelerators, or such a part of one, may be free somewhere.
  bool may_fit(std::int32_t gpus, std::int32_t milli) const {
    return gpus <= slots_.free() || (milli > 0 && hosted_.shared.has_room(milli));
  }
  bool is_full() const { return slots_.free() == 0 && !hosted_.shared.has_room(1); }
  // Starts a job that is no longer in the list, and takes `grants` away.
  void start(std::uint32_t job, FleetTime now, Grants& grants);
  // Takes it out of the list and starts it.
  void begin_waiting_job(std::uint32_t job, FleetTime now, Grants& grants);
  // Ends all jobs whose time has come; whether one ended before its limit.
  bool end_jobs(FleetTime now);
  // A job that runs loses what it computed since its newest save that counts at `trusted` (at most
  // `now`). It begins again where it is after `delay` and what a restart takes.
  void restart(std::uint32_t job, FleetTime now, FleetTime trusted, FleetTime delay,
               std::string_view cause);
  // Likewise, but it gives its accelerators back and waits for others.
  void requeue(std::uint32_t job, FleetTime now, FleetTime trusted, FleetTime delay,
               std::string_view cause);
  // Stops a job that runs for others, or for want of power. Where nothing gives it time to save it
  // saves all whole steps in no time; what that takes, and a read of its state, is paid as it
  // starts again. With grace it holds its place until its save counts, or loses what is not saved.
  void preempt(std::uint32_t job, FleetTime now, std::string_view cause = "preempted");
  StopCost cost_of_stop(std::uint32_t job, FleetTime now) const;
  // Jobs that are stopped and save, and hold their places meanwhile: they count as running.
  const std::map<std::uint32_t, HeldSave>& saves() const { return clocks_.saves; }
  const JobRanks& ranks() const { return ranks_; }
  // las: it runs, and is in the second queue from now on.
  void demote(std::uint32_t job);
  void lend(std::uint32_t job) { ranks_.lend(job); }
  void end_loan(std::uint32_t job);                                 // of one that waits or runs
  void forget_loan(std::uint32_t job) { ranks_.forget_loan(job); }  // of one that is over
  // Likewise for its own other place, which it gets at once or later.
  void leave(std::uint32_t job, FleetTime now, std::string_view cause = "moved");
  // Starts a job that waits, of another size perhaps. Where a question has no sizes it has its own.
  void begin_as(const ClusterJob& sized, std::uint32_t number, FleetTime now, Grants& grants);
  // The same for a planned stop: it saved all whole steps.
  void pause(std::uint32_t job, FleetTime now, FleetTime delay);
  // It runs, and its first step, which has not come, comes then.
  void move_begin(std::uint32_t job, FleetTime begin);
  // Its steps take so long from now on, `capped_ps` of it by a cap.
  void change_speed(std::uint32_t job, FleetTime now, std::int64_t step_ps, std::int64_t capped_ps);
  const JobRun& run_of(std::uint32_t job) const { return runs_[job]; }
  RunReach reach_at(std::uint32_t job, FleetTime now) const;  // of one that runs
  FleetTime start_overhead(std::uint32_t job) const;          // to its first step on a new place
  std::vector<SizedUse> sized_uses() const;
  // To whoever listens; a job holds its place, if it has one.
  void tell(FleetEventKind kind, FleetTime at, std::uint32_t job,
            std::string_view cause = {}) const;
  // Counts what jobs that run have done so far.
  void close(FleetTime now);

  // Jobs that share links, with their prices: those that run; that began or left since the last
  // look. Of the latter some may have begun again.
  const std::map<std::uint32_t, PlacePrice>& sharing() const { return sharing_; }
  ListedJobs sharers;
  // las: who got accelerators and gave them back, in order, since the last look.
  std::vector<HoldingChange> holding_changes;
  StoreAsks store;                   // likewise, where a store is shared
  std::vector<std::uint32_t> ended;  // by the last end_jobs

  std::vector<JobRecord> records;  // of all jobs
  FleetWork spent;                 // by runs that are over, of thousandths of accelerators

 private:
  FleetTime expected_length(std::uint32_t job) const;
  void count_groups(const Grants& grants, JobRecord& record) const;
  void account(std::uint32_t job, const RunReach& reach, std::int64_t kept, FleetTime at,
               std::int64_t lead_ps = 0);
  void stop_run(std::uint32_t job, FleetTime now, FleetTime trusted);
  void leave_with(std::uint32_t job, FleetTime now, std::string_view cause, const StopCost& cost);
  void account_whole(std::uint32_t job, std::int64_t kept, FleetTime now);
  void begin_run(std::uint32_t job, FleetTime now, FleetTime overhead, const StoreRead& read);
  void ask_store(std::uint32_t job, const StoreRead& read);
  void expect_end(std::uint32_t job);
  void forget_run(std::uint32_t job);
  void give_back(std::uint32_t job, FleetTime now);
  void wait_again(std::uint32_t job, FleetTime now, FleetTime overhead, bool moves);
  void take_price(std::uint32_t job, const Grants& grants);
  void put_on_hosts(std::uint32_t job, bool there);
  std::optional<std::uint64_t> gpu_to_join(std::uint32_t job) const;
  void begin_part(std::uint32_t job, const Grants& place);
  void end_part(std::uint32_t job);
  void draw(std::uint32_t job, bool begins);
  void draw_part(std::uint32_t job, bool begins);

  SizedJobs sized_;
  const std::vector<ClusterJob>& jobs_;
  const FleetQuestion& question_;
  Slots slots_;
  Placer placer_;
  bool pool_, plain_, exact_;
  RunningEnds ends_, limits_;  // by their ends; by what the scheduler expects, where that differs
  WaitingList waiting_;
  std::vector<Grants> grants_;  // of jobs that run; none in a pool
  std::vector<JobRun> runs_;    // of jobs that run or did
  JobClocks clocks_;
  HostedJobs hosted_;
  std::map<std::uint32_t, PlacePrice> sharing_;
  JobRanks ranks_;
  ClusterPower power_;
};

inline const std::vector<std::uint32_t>& FleetState::jobs_on(std::int32_t host) const {
  return hosted_.by_host[static_cast<std::size_t>(host)];
}

inline std::int32_t FleetState::level_of(std::uint32_t job) const {
  return jobs_[job].within == 0 ? no_level : question_.within[jobs_[job].within - 1U];
}

inline bool FleetState::could_stand(std::uint32_t job) const {
  const std::int32_t level = level_of(job);
  return level == no_level || jobs_[job].gpus <= slots_.shape().gpus_within(level);
}

inline void FleetState::draw(std::uint32_t job, bool begins) {
  if (draws_part(job))
    draw_part(job, begins);
  else if (begins)
    power_.all.begin(job, power_user(job), jobs_[job].gpus);
  else
    power_.all.end(job, power_user(job), jobs_[job].gpus);
}

}  // namespace orrery
