// SPDX-License-Identifier: Apache-2.0
// Plans moves on a copy of the hosts, weighs them, and carries them out all at once.
#include "sim/engine/decisions/defragment_pass.h"

#include <algorithm>

#include "sim/engine/fleet/future_room.h"

namespace orrery {

DefragmentPass::DefragmentPass(FleetState& state, const FleetQuestion& question)
    : state_(state),
      question_(question),
      together_(JobPlace::pack, question.seed),
      by_rule_(state.placer()),
      priced_(question.prices != nullptr &&
              std::any_of(question.works.begin(), question.works.end(),
                          [](const JobWork& work) { return work.priced; })) {}

bool DefragmentPass::may_move(std::uint32_t job) const {
  return state_.job(job).preemptible && state_.work_of(job).save_steps > 0 &&
         !state_.saves().contains(job);
}

GpuMicros DefragmentPass::price_of(std::uint32_t job) const {
  const FleetTime lost{(state_.work_of(job).save_ps + state_.run_of(job).step_ps) / 1'000'000};
  return static_cast<GpuMicros>(state_.job(job).gpus) *
         static_cast<GpuMicros>(
             (state_.start_overhead(job) + resume_of(state_.work_of(job)) + lost).us);
}

// Finds other hosts for as few of a host's jobs as leave it `wanted` accelerators: the small ones
// first. The host itself and hosts that are free as a whole take none of them, and none goes where
// a feed of power could not carry it.
bool DefragmentPass::empties(std::int32_t host, std::int32_t wanted, Slots& future,
                             FuturePower& power, std::vector<Move>& moves) {
  std::vector<std::uint32_t> jobs = state_.jobs_on(host);
  std::sort(jobs.begin(), jobs.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::int32_t one = state_.job(a).gpus, two = state_.job(b).gpus;
    return one != two ? one < two : a < b;
  });
  const std::size_t before = moves.size();
  std::int32_t free = future.free_of(host);
  future.set_out(host, true);
  for (const std::uint32_t job : jobs) {
    if (free >= wanted) break;
    const Grants& now = state_.grants_of(job);
    Move move{.job = job, .place = {}};
    const bool single = now.size() == 1 && now.front().hosts == 1;
    if (!single || !may_move(job)) break;
    power.give(job, now);
    if (!power.find(state_.power_user(job), state_.job(job).gpus, no_level, future, together_,
                    move.place, job) ||
        future.free_of(move.place.front().host) == future.shape().gpus_per_host) {
      power.take(job, now);
      break;
    }
    future.take(move.place);
    power.take(job, move.place);
    free += state_.job(job).gpus;
    moves.push_back(std::move(move));
  }
  if (free < wanted) {
    for (std::size_t i = before; i < moves.size(); ++i) {
      future.give(moves[i].place);
      power.give(moves[i].job, moves[i].place);
      power.take(moves[i].job, state_.grants_of(moves[i].job));
    }
    moves.resize(before);
    future.set_out(host, false);
    return false;
  }
  // It stays out until all is planned, so that nobody moves there.
  for (std::size_t i = before; i < moves.size(); ++i) future.give(state_.grants_of(moves[i].job));
  return true;
}

bool DefragmentPass::plan(const WaitingJob& head, Slots& future, std::vector<Move>& moves) {
  const std::int32_t of_host = future.shape().gpus_per_host;
  const std::int32_t wanted = std::min(head.gpus, of_host);
  std::vector<std::int32_t> emptied;
  FuturePower power(state_);
  const auto fits = [&] {
    for (const std::int32_t host : emptied) future.set_out(host, false);
    const bool there = power.fits(head.job, future);
    for (const std::int32_t host : emptied) future.set_out(host, true);
    return there;
  };
  for (std::int32_t free = of_host - 1; free > 0; --free) {
    const HostSet hosts = future.with_free(free);  // a copy: it changes meanwhile
    for (std::int32_t host = hosts.first(0); host >= 0;
         host = host + 1 < future.shape().hosts ? hosts.first(host + 1) : -1) {
      if (future.free_of(host) != free || !empties(host, wanted, future, power, moves)) continue;
      emptied.push_back(host);
      if (!fits()) continue;
      for (const std::int32_t each : emptied) future.set_out(each, false);
      return true;
    }
  }
  return false;
}

// Until the place that it can be promised.
FleetTime DefragmentPass::wait_of_head(FleetTime now) const {
  const std::uint32_t head = state_.waiting().head().job;
  FutureRoom future(state_);
  const FleetTime at = first_place(state_, head, future);
  return future.fits(head) ? std::max(at - now, FleetTime{}) : fleet_never;
}

bool DefragmentPass::make_room(FleetTime now) {
  const WaitingJob head = state_.waiting().head();
  if (head.gpus > state_.slots().free() || FuturePower(state_).fits(head.job, state_.slots()))
    return false;
  if (!state_.has_power(state_.milliwatts() + state_.extra_milliwatts(head.job))) return false;
  if (head_ == head.job && seen_ == state_.slots().changes()) return false;
  head_ = head.job;
  seen_ = state_.slots().changes();
  Slots future = state_.slots();
  std::vector<Move> moves;
  if (!plan(head, future, moves)) return false;
  GpuMicros price = 0;
  for (const Move& move : moves) price += price_of(move.job);
  const GpuMicros gain =
      static_cast<GpuMicros>(head.gpus) * static_cast<GpuMicros>(wait_of_head(now).us);
  if (price >= gain) return false;
  carry_out(moves, now);
  return true;
}

// All leave before any begins: one may go where another was.
void DefragmentPass::carry_out(std::vector<Move>& moves, FleetTime now) {
  for (const Move& move : moves) state_.leave(move.job, now);
  for (Move& move : moves) state_.begin_waiting_job(move.job, now, move.place);
}

bool DefragmentPass::improve(FleetTime now) {
  if (!priced_ || improved_ == state_.slots().changes()) return false;
  bool any = false;
  std::vector<std::uint32_t> jobs;
  state_.ends().each([&](const RunningEnd& end) {
    const bool computes = state_.run_of(end.job).begin <= now && end.at > now;
    if (computes && state_.work_of(end.job).priced && may_move(end.job)) jobs.push_back(end.job);
    return true;
  });
  std::sort(jobs.begin(), jobs.end());
  for (const std::uint32_t job : jobs) {
    const ClusterJob& asked = state_.job(job);
    const JobWork& work = state_.work_of(job);
    const std::int64_t step = question_.prices->price(asked.work, state_.grants_of(job)).step_ps;
    if (step <= work.step_ps) continue;
    Slots future = state_.slots();
    FuturePower power(state_);
    future.give(state_.grants_of(job));
    power.give(job, state_.grants_of(job));
    std::vector<Move> move = {{.job = job, .place = {}}};
    if (!power.find(state_.power_user(job), asked.gpus, state_.level_of(job), future, by_rule_,
                    move.front().place, job))
      continue;
    const std::int64_t there = question_.prices->price(asked.work, move.front().place).step_ps;
    const std::int64_t left = steps_of(work, asked.length) - state_.reach_at(job, now).steps;
    const GpuPicos gain = static_cast<GpuPicos>(left) * (step - there) * asked.gpus;
    if (gain <= price_of(job) * 1'000'000) continue;
    carry_out(move, now);
    any = true;
  }
  improved_ = state_.slots().changes();
  return any;
}

}  // namespace orrery
