// SPDX-License-Identifier: Apache-2.0
// Stops jobs of a shared cluster before their ends: where they are, or to wait for another place.
#include <algorithm>
#include <utility>

#include "sim/engine/fleet/fleet_state.h"

namespace orrery {
namespace {

// Once it was stopped.
const StoreRead& read_again(const JobWork& work) {
  return work.later_read.alone.us > 0 ? work.later_read : work.first_read;
}

// A planned stop is as long as if the job read its state alone at the end of it.
StoreRead read_within(StoreRead read, FleetTime stop) {
  read.after = std::min(read.after, stop);
  read.alone = std::min(read.alone, stop - read.after);
  return read;
}

}  // namespace

// Ends a run early. A save for which it holds its place is lost.
void FleetState::stop_run(std::uint32_t number, FleetTime now, FleetTime trusted) {
  const RunReach reach = reach_at(number, now);
  const std::int64_t kept = trusted < now ? reach_at(number, trusted).saved : reach.saved;
  account(number, reach, kept, now);
  forget_run(number);
  clocks_.saves.erase(number);
  runs_[number].done = kept;
}

void FleetState::restart(std::uint32_t number, FleetTime now, FleetTime trusted, FleetTime delay,
                         std::string_view cause) {
  if (clocks_.saves.contains(number)) {  // another job waits for its place
    requeue(number, now, trusted, delay, cause);
    return;
  }
  tell(FleetEventKind::restart, now, number, cause);
  stop_run(number, now, trusted);
  ++records[number].stops;
  begin_run(number, now, start_overhead(number) + work_of(number).restart + delay,
            read_again(work_of(number)));
}

void FleetState::requeue(std::uint32_t number, FleetTime now, FleetTime trusted, FleetTime delay,
                         std::string_view cause) {
  tell(FleetEventKind::stop, now, number, cause);
  stop_run(number, now, trusted);
  give_back(number, now);
  ++records[number].stops;
  if (question_.store_bytes_per_s > 0) store.later[number] = read_again(work_of(number));
  wait_again(number, now, work_of(number).restart + delay, false);
}

namespace {

// In no time: what it takes is paid later.
StopCost cost_of_pause(const JobWork& work, const JobRun& run, const RunReach& reach,
                       FleetTime now) {
  return {.stops = now,
          .leaves = now,
          .kept = work.save_steps > 0 ? reach.steps : run.saved,
          .again = FleetTime{work.save_ps / 1'000'000} + resume_of(work)};
}

}  // namespace

StopCost FleetState::cost_of_stop(std::uint32_t number, FleetTime now) const {
  const JobWork& work = work_of(number);
  const JobRun& run = runs_[number];
  const RunReach reach = reach_at(number, now);
  StopCost cost = cost_of_pause(work, run, reach, now);
  if (!question_.policy.grace || work.save_steps == 0) return cost;
  cost.again = resume_of(work);
  if (const auto save = clocks_.saves.find(number); save != clocks_.saves.end()) {
    cost.stops = clocks_.computes_until(number, now);
    cost.leaves = save->second.until;
    return cost;
  }
  const LastSave save = last_save_of(work, run, steps_of(work, jobs_[number].length), now);
  if (save.counts - now > *question_.policy.grace) {
    cost.kept = reach.saved;
    return cost;
  }
  cost.stops = save.stops;
  cost.leaves = save.counts;
  return cost;
}

void FleetState::preempt(std::uint32_t number, FleetTime now, std::string_view cause) {
  ++records[number].preemptions;
  const StopCost cost = cost_of_stop(number, now);
  if (cost.leaves == now) {
    leave_with(number, now, cause, cost);
    return;
  }
  forget_run(number);
  records[number].end = clocks_.promised_ends[number] = cost.leaves;
  ends_.insert({cost.leaves, number, jobs_[number].gpus});
  limits_.insert({cost.leaves, number, jobs_[number].gpus});
  if (sharing_.erase(number) > 0) sharers.left.push_back(number);
  clocks_.saves[number] = {cost.stops, cost.leaves, cause};
}

void FleetState::leave(std::uint32_t number, FleetTime now, std::string_view cause) {
  const auto save = clocks_.saves.find(number);
  const RunReach reach = reach_at(number, now);
  StopCost cost = cost_of_pause(work_of(number), runs_[number], reach, now);
  if (save != clocks_.saves.end())
    cost.again = resume_of(work_of(number)) + (save->second.until - now);
  leave_with(number, now, cause, cost);
}

void FleetState::leave_with(std::uint32_t number, FleetTime now, std::string_view cause,
                            const StopCost& cost) {
  tell(FleetEventKind::stop, now, number, cause);
  if (cause == "moved") ++records[number].moves;
  const JobWork& work = work_of(number);
  const GpuPicos lost_before = spent.lost;
  account_whole(number, cost.kept, now);
  spent.preempted += std::exchange(spent.lost, lost_before) - lost_before;
  forget_run(number);
  clocks_.saves.erase(number);
  runs_[number].done = cost.kept;
  give_back(number, now);
  if (jobs_[number].sizes > 0) ++sized_.uses[number].moves;
  if (question_.store_bytes_per_s > 0 && work.later_read.alone.us > 0)
    store.later[number] = work.later_read;
  wait_again(number, now, cost.again, cause == "moved");
}

FleetTime JobClocks::computes_until(std::uint32_t job, FleetTime now) const {
  const auto save = saves.find(job);
  return save == saves.end() ? now : std::min(now, save->second.stops);
}

// With the time for which it holds its place to save.
void FleetState::account_whole(std::uint32_t number, std::int64_t kept, FleetTime now) {
  const FleetTime at = clocks_.computes_until(number, now);
  account(number, reach_at(number, at), kept, at);
  spent.saving += milli_gpus(jobs_[number]) * static_cast<GpuPicos>((now - at).us) * 1'000'000;
}

// `overhead`: before its first step once it starts again. Whoever `moves` may do so at once.
void FleetState::wait_again(std::uint32_t number, FleetTime now, FleetTime overhead, bool moves) {
  records[number].end = fleet_never;
  clocks_.queued[number] = now;
  runs_[number].begin = overhead;
  if (moves || !clocks_.held.hold(number, now, now - runs_[number].placed)) wait(number);
}

void FleetState::go_behind(std::uint32_t number, FleetTime now) {
  waiting_.take(waiting_job(number));
  clocks_.turns[number] = now;
  if (!clocks_.held.hold(number, now, {})) wait(number);
}

bool FleetState::return_until(FleetTime now) {
  const bool any = next_return() <= now;
  while (next_return() <= now) wait(clocks_.held.take());
  return any;
}

void FleetState::pause(std::uint32_t number, FleetTime now, FleetTime delay) {
  if (clocks_.saves.contains(number)) return;
  tell(FleetEventKind::restart, now, number, "planned stop");
  const RunReach reach = reach_at(number, now);
  account(number, reach, reach.steps, now);
  forget_run(number);
  runs_[number].done = reach.steps;
  const FleetTime stop = start_overhead(number) + delay;
  begin_run(number, now, stop, read_within(read_again(work_of(number)), stop));
}

}  // namespace orrery
