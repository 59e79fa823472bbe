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

}  // namespace

// Ends a run early.
void FleetState::stop_run(std::uint32_t number, FleetTime now, FleetTime trusted) {
  const RunReach reach = reach_at(number, now);
  const std::int64_t kept = trusted < now ? reach_at(number, trusted).saved : reach.saved;
  account(number, reach, kept, now);
  forget_run(number);
  runs_[number].done = kept;
}

void FleetState::restart(std::uint32_t number, FleetTime now, FleetTime trusted, FleetTime delay,
                         std::string_view cause) {
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

void FleetState::preempt(std::uint32_t number, FleetTime now) {
  leave(number, now, "preempted");
  ++records[number].preemptions;
}

void FleetState::leave(std::uint32_t number, FleetTime now, std::string_view cause) {
  tell(FleetEventKind::stop, now, number, cause);
  if (cause == "moved") ++records[number].moves;
  const JobWork& work = work_of(number);
  JobRun& run = runs_[number];
  const RunReach reach = reach_at(number, now);
  const bool saves = work.save_steps > 0;
  const GpuPicos lost_before = spent.lost;
  account(number, reach, saves ? reach.steps : run.saved, now);
  spent.preempted += std::exchange(spent.lost, lost_before) - lost_before;
  forget_run(number);
  run.done = saves ? reach.steps : run.saved;
  give_back(number, now);
  if (jobs_[number].sizes > 0) ++sized_.uses[number].moves;
  if (question_.store_bytes_per_s > 0 && work.later_read.alone.us > 0)
    store.later[number] = work.later_read;
  wait_again(number, now, FleetTime{work.save_ps / 1'000'000} + resume_of(work), cause == "moved");
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
  tell(FleetEventKind::restart, now, number, "planned stop");
  const RunReach reach = reach_at(number, now);
  account(number, reach, reach.steps, now);
  forget_run(number);
  runs_[number].done = reach.steps;
  begin_run(number, now, start_overhead(number) + delay, work_of(number).first_read);
}

}  // namespace orrery
