// SPDX-License-Identifier: Apache-2.0
// Shows policies of rounds the jobs of a cluster, and moves those whose size or place changes.
#include "sim/engine/decisions/round_loop.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/engine/decisions/round_needs.h"
#include "sim/engine/elastic/goodput_sizes.h"

namespace orrery {
namespace {

// Rounds in a row in which jobs wait and nobody runs: after these nobody ever will, unless
// something happens.
constexpr std::int64_t most_idle_rounds = 1'000;

// What a job takes on so many accelerators, alone and well placed.
FleetTime length_on(const FleetState& state, const FleetQuestion& question, std::uint32_t number,
                    WorkSize size) {
  const ClusterJob& job = state.job(number);
  if (size.work == job.work) return job.length;
  const std::int64_t steps =
      size.steps > 0 ? size.steps : steps_of(state.work_of(number), job.length);
  return length_of(steps, question.works[size.work].step_ps);
}

// Steps that are not over, of all.
double share_left(const FleetState& state, std::uint32_t number, FleetTime now) {
  const JobWork& work = state.work_of(number);
  const std::int64_t steps = steps_of(work, state.job(number).length);
  if (steps == 0) return 0;
  const std::int64_t done =
      state.is_running(number) ? state.reach_at(number, now).steps : state.run_of(number).done;
  return 1 - static_cast<double>(done) / static_cast<double>(steps);
}

// A job on its sizes, alone and well placed. `application` of an ElasticJob is its number here.
class FleetPaces final : public JobPaces {
 public:
  FleetPaces(const FleetState& state, const FleetQuestion& question)
      : state_(state), question_(question) {}

  JobPace pace(const ElasticJob& job, std::int32_t gpus, bool /*several_hosts*/) override {
    const ClusterJob& now = state_.job(job.application);
    if (now.sizes == 0)
      return gpus == now.gpus ? pace_on(job.application, {now.gpus, now.work}) : JobPace{};
    for (const WorkSize& size : question_.sizes[now.sizes - 1U])
      if (size.gpus == gpus) return pace_on(job.application, size);
    return {};
  }

  // On straight lines between sizes, and in proportion below the first.
  double share_rate(const ElasticJob& job, std::int32_t gpus) override {
    const ClusterJob& now = state_.job(job.application);
    if (now.sizes == 0) {
      const double all = pace_on(job.application, {now.gpus, now.work}).rate();
      return all * std::min(1.0, static_cast<double>(gpus) / now.gpus);
    }
    double rate = 0;
    std::int32_t below = 0;
    for (const WorkSize& size : question_.sizes[now.sizes - 1U]) {
      const double here = pace_on(job.application, size).rate();
      if (gpus <= size.gpus)
        return rate + (here - rate) * (gpus - below) / static_cast<double>(size.gpus - below);
      rate = here;
      below = size.gpus;
    }
    return rate;
  }

 private:
  // All of its work in as many microseconds as it takes: elastic_work for 10^6 of those that a step
  // has picoseconds.
  JobPace pace_on(std::uint32_t job, WorkSize size) const {
    const std::int64_t us = std::max<std::int64_t>(1, length_on(state_, question_, job, size).us);
    return {.batch = 1, .step_ps = us, .worth = elastic_work / 1'000'000};
  }
  const FleetState& state_;
  const FleetQuestion& question_;
};

}  // namespace

RoundLoop::RoundLoop(FleetState& state, const FleetQuestion& question)
    : state_(state),
      question_(question),
      paces_(std::make_unique<FleetPaces>(state, question)),
      placer_(state.placer()),
      feeds_(state, question) {
  rounds_.gpus_per_host = question.shape.gpus_per_host;
  rounds_.apart = false;
  rounds_.slice_rounds = 1;
}

FleetTime RoundLoop::next() const {
  if (active_.empty() || (!changed_ && !open_)) return fleet_never;
  const std::int64_t round = question_.loops.rounds.every.us;
  return {(from_.us + round - 1) / round * round};
}

std::vector<WorkSize> RoundLoop::sizes_of(const ClusterJob& job) const {
  if (job.sizes > 0) return question_.sizes[job.sizes - 1U];
  return {{job.gpus, job.work}};
}

void RoundLoop::submit(std::uint32_t number) {
  const ClusterJob& job = state_.job(number);
  std::vector<WorkSize> sizes = sizes_of(job);
  // What it asks for was admitted.
  std::erase_if(sizes, [&](const WorkSize& size) {
    const PowerUser user{size.work, job.priority};
    return size.gpus != job.gpus && (!state_.power().has_alone(user, size.gpus) ||
                                     !feeds_.admits(user, size.gpus, no_level));
  });
  Active active{.number = number};
  active.asked = {.submit = eligible(job, state_.records[number]),
                  .application = number,
                  .gpus = job.gpus,
                  .least = sizes.front().gpus,
                  .most = sizes.back().gpus};
  for (const WorkSize& size : sizes) active.asked.sizes.push_back(size.gpus);
  active_.push_back(std::move(active));
  changed_ = true;
}

void RoundLoop::settle(bool changed) { changed_ = changed_ || changed; }

void RoundLoop::wake(FleetTime now) {
  from_ = now;
  if (next() <= now)
    decide(now);
  else if (changed_ && may_lose_hosts(question_))
    begin_again(now);
  from_ = now + FleetTime{1};
}

void RoundLoop::forget_ended(FleetTime now) {
  std::erase_if(active_, [&](const Active& active) { return state_.is_over(active.number, now); });
}

void RoundLoop::begin_again(FleetTime now) {
  Grants found;
  for (const Active& active : active_) {
    const bool stopped = state_.records[active.number].start != fleet_never &&
                         !state_.is_running(active.number) && !active.put_off;
    if (stopped && state_.find(active.number, found))
      state_.begin_waiting_job(active.number, now, found);
  }
}

RoundJob RoundLoop::round_job(const Active& active, FleetTime now) const {
  const JobWork& work = state_.work_of(active.number);
  const JobRecord& record = state_.records[active.number];
  const FleetTime restart =
      state_.start_overhead(active.number) + FleetTime{work.save_ps / 1'000'000} + resume_of(work);
  // A first start takes nothing away from anybody.
  const bool ran = record.start != fleet_never;
  return {.number = active.number,
          .asked = &active.asked,
          .place = &state_.grants_of(active.number),
          .age = std::max(now - eligible(state_.job(active.number), record), FleetTime{1}),
          .restarts = record.stops + active.moves,
          .restart = ran ? restart : FleetTime{},
          .most_run = active.asked.most,  // its speed on others is known
          .ran_across = true,
          .left = std::llround(static_cast<double>(elastic_work) *
                               share_left(state_, active.number, now))};
}

// Sizes of the jobs of one priority, from what those of higher ones left.
void RoundLoop::size_rank(std::int32_t rank, const std::vector<std::size_t>& which,
                          std::int64_t& left, FleetTime now, std::vector<SizedGang>& gangs) {
  RoundView view{.now = now,
                 .jobs = {},
                 .question = rounds_,
                 .paces = *paces_,
                 .gpus = std::max<std::int64_t>(0, left)};
  for (const std::size_t i : which) view.jobs.push_back(round_job(active_[i], now));
  std::unique_ptr<RoundPolicy>& policy = policies_[rank];
  if (!policy) policy = round_policy(question_.loops.rounds.rule);
  const std::vector<std::int32_t> sizes = policy->sizes(view);
  for (std::size_t k = 0; k < which.size(); ++k) {
    gangs[which[k]].gpus = sizes[k];
    left -= set_aside(sizes[k], rounds_.gpus_per_host, rounds_.apart);
  }
}

// No less than the largest of them asks for, which was admitted.
std::int64_t RoundLoop::carried() const {
  std::int64_t draw = 0, gpus = 0, largest = 0;
  for (const Active& active : active_) {
    draw += state_.extra_milliwatts(active.number);
    gpus += state_.job(active.number).gpus;
    largest = std::max<std::int64_t>(largest, state_.job(active.number).gpus);
  }
  const std::int64_t each = gpus > 0 ? draw / gpus : 0;
  return std::max(largest,
                  std::min(state_.power().most_gpus(each), state_.feeds().most_gpus(each)));
}

std::vector<SizedGang> RoundLoop::choose_sizes(FleetTime now) {
  std::vector<SizedGang> gangs(active_.size());
  std::map<std::int32_t, std::vector<std::size_t>, std::greater<>> by_rank;
  std::int64_t left = std::min(state_.slots().total() - state_.slots().out(), carried());
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const ClusterJob& job = state_.job(active_[i].number);
    SizedGang& gang = gangs[i];
    gang.job = active_[i].number;
    gang.rank = job.priority;
    gang.now = &state_.grants_of(active_[i].number);
    gang.stays = !job.preemptible && !gang.now->empty();
    if (!gang.stays) {
      by_rank[gang.rank].push_back(i);
      continue;
    }
    gang.gpus = job.gpus;
    left -= set_aside(job.gpus, rounds_.gpus_per_host, rounds_.apart);
  }
  for (const auto& [rank, which] : by_rank) size_rank(rank, which, left, now, gangs);
  return gangs;
}

bool RoundLoop::has_power(std::uint32_t number, WorkSize size) const {
  const PowerUser user{size.work, state_.job(number).priority};
  return state_.has_power(state_.milliwatts() + state_.power().extra(user, size.gpus));
}

void RoundLoop::place(std::vector<SizedGang>& gangs) {
  Slots slots = state_.slots();
  if (state_.feeds().empty() && question_.power_limit_milliwatts == 0) {
    place_gangs(slots, placer_, gangs);
    return;
  }
  std::vector<RoundNeeds::User> users;
  for (const Active& active : active_) {
    const ClusterJob& job = state_.job(active.number);
    users.push_back({job.priority, sizes_of(job)});
  }
  RoundNeeds needs(state_, std::move(users));
  place_gangs(slots, placer_, gangs, needs);
}

ClusterJob RoundLoop::sized(std::uint32_t number, WorkSize size) const {
  ClusterJob job = state_.job(number);
  const FleetTime length = length_on(state_, question_, number, size);
  job.limit = length + (job.limit - job.length);
  job.length = length;
  job.gpus = size.gpus;
  job.work = size.work;
  return job;
}

void RoundLoop::decide(FleetTime now) {
  forget_ended(now);
  std::vector<SizedGang> gangs = choose_sizes(now);
  place(gangs);
  move(gangs, now);
  open_ = false;
  for (const Active& active : active_)
    open_ = open_ || !state_.is_running(active.number) ||
            (state_.job(active.number).preemptible &&
             state_.job(active.number).gpus < active.asked.most);
  idle_rounds_ = state_.ends().empty() ? idle_rounds_ + 1 : 0;
  if (idle_rounds_ > most_idle_rounds) open_ = false;
  changed_ = false;
}

void RoundLoop::move(const std::vector<SizedGang>& gangs, FleetTime now) {
  std::vector<std::size_t> moves;
  for (std::size_t i = 0; i < gangs.size(); ++i)
    if (gangs[i].place != *gangs[i].now) moves.push_back(i);
  for (const std::size_t i : moves) {
    Active& active = active_[i];
    if (!state_.is_running(active.number)) continue;
    state_.leave(active.number, now);
    ++active.moves;
  }
  for (const std::size_t i : moves) {
    Active& active = active_[i];
    Grants place = gangs[i].place;
    const std::vector<WorkSize> sizes = sizes_of(state_.job(active.number));
    const auto size = std::find_if(sizes.begin(), sizes.end(), [&](const WorkSize& one) {
      return one.gpus == gpus_of_place(place);
    });
    active.put_off = size == sizes.end() || !has_power(active.number, *size);
    if (!active.put_off) state_.begin_as(sized(active.number, *size), active.number, now, place);
  }
  for (const std::size_t i : moves) {
    JobRecord& record = state_.records[active_[i].number];
    if (active_[i].put_off && record.start != fleet_never) ++record.preemptions;
  }
}

}  // namespace orrery
