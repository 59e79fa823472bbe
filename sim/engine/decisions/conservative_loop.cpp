// SPDX-License-Identifier: Apache-2.0
// Keeps a plan of all that runs and waits.
#include "sim/engine/decisions/conservative_loop.h"

#include <algorithm>

namespace orrery {

// Who takes no time at all holds a place for an instant.
FleetTime ConservativeLoop::Promise::end() const { return at + std::max(job.limit, FleetTime{1}); }

FleetTime ConservativeLoop::next() const {
  FleetTime first = fleet_never;
  for (const Promise& one : promises_) first = std::min(first, one.at);
  return first;
}

ConservativeLoop::ConservativeLoop(FleetState& state, const FleetQuestion& question)
    : state_(state),
      placer_(state.placer()),
      plan_(question.shape),
      power_(state, question),
      view_(question.shape) {}

// Lets `view_` have what hosts have free.
void ConservativeLoop::show(const std::vector<std::int32_t>& room) {
  for (std::int32_t host = 0; host < view_.shape().hosts; ++host) {
    const std::int32_t by = room[static_cast<std::size_t>(host)] - view_.free_of(host);
    const HostGrant change{.host = host, .hosts = 1, .gpus = by > 0 ? by : -by};
    if (by > 0) view_.give({&change, 1});
    if (by < 0) view_.take({&change, 1});
  }
}

void ConservativeLoop::take(const Promise& promise) {
  plan_.take(promise.place, promise.at, promise.end());
  power_.take(promise.job.job, promise.place, promise.at, promise.end());
}

void ConservativeLoop::give(const Promise& promise) {
  plan_.give(promise.place, promise.at, promise.end());
  power_.give(promise.job.job, promise.place, promise.at, promise.end());
}

// The first start before the one that it has, with a place by the rule; fleet_never: there is none.
FleetTime ConservativeLoop::find(const Promise& promise, Grants& place) {
  std::vector<std::int32_t> room;
  const WaitingJob& job = promise.job;
  for (FleetTime from;; from.us += 1) {
    from = plan_.find(job.gpus, job.limit, promise.at, room, from);
    if (from >= promise.at) return fleet_never;
    const Promise then{.job = job, .at = from};
    if (!power_.empty())
      if (const auto until = power_.blocked_until(job.job, from, then.end())) {
        if (*until >= promise.at) return fleet_never;
        from = *until - FleetTime{1};
        continue;
      }
    show(room);
    if (power_.empty()) {
      placer_.find(view_, job.gpus, place, no_level, job.job);
      return from;
    }
    if (power_.find(job.job, view_, from, then.end(), placer_, place)) return from;
  }
}

// Earlier than it stood, if there is room.
void ConservativeLoop::promise(Promise& promise, FleetTime now) {
  const bool stood = promise.at != fleet_never;
  if (stood) give(promise);
  Grants place;
  const FleetTime at = find(promise, place);
  if (at < promise.at) {
    if (stood) freed_.push_back(promise.room());
    promise.at = at;
    promise.place = std::move(place);
  }
  promise.seen = freed_so_far();
  if (promise.at == fleet_never) return;
  take(promise);
  if (promise.at <= now) return;
  FleetTime& told = state_.records[promise.job.job].promise;
  told = std::min(told, promise.at);
}

// Where much has become free it is not cheaper to look at each of it.
bool ConservativeLoop::may_improve(const Promise& promise) const {
  constexpr std::uint64_t most = 64;
  if (promise.at == fleet_never || promise.seen < forgotten_) return true;
  if (freed_so_far() - promise.seen > most) return true;
  const HeldRoom own = promise.room();
  return std::any_of(
      freed_.begin() + static_cast<std::ptrdiff_t>(promise.seen - forgotten_), freed_.end(),
      [&](const HeldRoom& freed) { return plan_.may_begin_earlier(promise.job.gpus, own, freed); });
}

// What all that wait have seen.
void ConservativeLoop::forget_freed() {
  std::uint64_t seen = freed_so_far();
  for (const Promise& one : promises_) seen = std::min(seen, one.seen);
  if (seen <= forgotten_) return;
  freed_.erase(freed_.begin(), freed_.begin() + static_cast<std::ptrdiff_t>(seen - forgotten_));
  forgotten_ = seen;
}

// What runs, and of what the plan has that which does not run any more; false where more than that
// has changed.
bool ConservativeLoop::ended_early(FleetTime now, std::vector<Running>& ended,
                                   std::vector<Running>& run) const {
  std::vector<RunningEnd> ends;
  state_.promised().each([&](const RunningEnd& end) {
    ends.push_back(end);
    return true;
  });
  std::sort(ends.begin(), ends.end(),
            [](const RunningEnd& a, const RunningEnd& b) { return a.job < b.job; });
  auto end = ends.begin();
  for (const Running& planned : running_) {
    if (end != ends.end() && end->job < planned.job) return false;
    if (end != ends.end() && end->job == planned.job) {
      if (end->at != planned.room.to) return false;
      run.push_back(planned);
      ++end;
    } else if (planned.room.to > now) {
      ended.push_back(planned);
    }
  }
  return end == ends.end();
}

// Whether hosts have free now what the plan says, once those that ended have given back theirs and
// those that are due have not begun.
bool ConservativeLoop::is_as_planned(FleetTime now, const std::vector<Running>& ended) const {
  const std::int32_t hosts = view_.shape().hosts;
  std::vector<std::int32_t> free(static_cast<std::size_t>(hosts));
  for (std::int32_t host = 0; host < hosts; ++host)
    free[static_cast<std::size_t>(host)] = plan_.free_now(host);
  const auto give = [&](const Grants& place) {
    for (const HostGrant& grant : place)
      for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
        free[static_cast<std::size_t>(host)] += grant.gpus;
  };
  for (const Running& one : ended) give(one.room.place);
  for (const Promise& one : promises_)
    if (one.at <= now) give(one.place);
  for (std::int32_t host = 0; host < hosts; ++host)
    if (free[static_cast<std::size_t>(host)] != state_.slots().free_of(host)) return false;
  return true;
}

// renew() where all that has changed is that some ended early, and others came: the plan stays, and
// so do promises that cannot improve. False: it is not so, and nothing is done.
bool ConservativeLoop::refresh(FleetTime now) {
  if (!power_.empty()) return false;
  if (promises_.size() + come_.size() != state_.waiting().size()) return false;
  for (const Promise& one : promises_)
    if (one.at < now) return false;
  std::sort(running_.begin(), running_.end(),
            [](const Running& a, const Running& b) { return a.job < b.job; });
  std::vector<Running> ended, run;
  if (!ended_early(now, ended, run) || !is_as_planned(now, ended)) return false;
  void_ = false;
  running_ = std::move(run);
  for (Running& one : ended) {
    plan_.give(one.room.place, now, one.room.to);
    freed_.push_back({now, one.room.to, std::move(one.room.place)});
  }
  for (const std::uint32_t job : come_) promises_.push_back({.job = state_.waiting_job(job)});
  come_.clear();
  std::sort(promises_.begin(), promises_.end(),
            [](const Promise& a, const Promise& b) { return is_before(a.job, b.job); });
  for (Promise& one : promises_) {
    if (may_improve(one))
      promise(one, now);
    else
      one.seen = freed_so_far();
  }
  forget_freed();
  if (plan_.spans() > 2 * spans_) {
    plan_.join_equal();
    spans_ = plan_.spans();
  }
  return true;
}

void ConservativeLoop::renew(FleetTime now) {
  void_ = false;
  come_.clear();
  running_.clear();
  forgotten_ += freed_.size();
  freed_.clear();
  plan_.clear(now, state_.slots());
  power_.clear(now);
  state_.promised().each([&](const RunningEnd& end) {
    Grants place{{.host = 0, .hosts = 1, .gpus = end.gpus}};
    if (!state_.is_pool()) place = state_.grants_of(end.job);
    plan_.give(place, end.at, fleet_never);
    power_.give(end.job, place, end.at, fleet_never);
    running_.push_back({end.job, {now, end.at, std::move(place)}});
    return true;
  });
  std::vector<Promise> waiting;
  for (const std::uint32_t number : state_.waiting().active()) {
    const SizeQueue& queue = state_.waiting().queue(number);
    for (std::size_t place = queue.next(0); place != SizeQueue::none; place = queue.next(place + 1))
      waiting.push_back({.job = queue.at(place)});
  }
  const auto before = [](const Promise& a, const Promise& b) { return is_before(a.job, b.job); };
  std::sort(waiting.begin(), waiting.end(), before);
  auto old = promises_.begin();
  for (Promise& one : waiting) {
    while (old != promises_.end() && before(*old, one)) ++old;
    if (old == promises_.end() || old->job.job != one.job.job || old->at < now) continue;
    if (old->at == fleet_never || !plan_.has_room(old->place, old->at, old->end()) ||
        !power_.has_room(old->job.job, old->place, old->at, old->end()))
      continue;
    one = std::move(*old);
    take(one);
  }
  promises_ = std::move(waiting);
  for (Promise& one : promises_) promise(one, now);
  spans_ = plan_.spans();
}

// Its hosts are free, and their feeds carry it.
bool ConservativeLoop::may_start(const Promise& promise) const {
  if (!is_free(state_.slots(), promise.place)) return false;
  const std::uint32_t job = promise.job.job;
  return power_.empty() ||
         FuturePower(state_).carries(state_.power_user(job), state_.job(job).gpus, promise.place);
}

// Whether all whose time has come had their places.
bool ConservativeLoop::start_due(FleetTime now) {
  std::size_t kept = 0;
  bool all = true;
  for (Promise& one : promises_) {
    const bool due = one.at <= now;
    all = all && (!due || may_start(one));
    if (all && due) {
      running_.push_back({one.job.job, {now, now + (one.end() - one.at), one.place}});
      state_.begin_waiting_job(one.job.job, now, one.place);
    } else if (&promises_[kept++] != &one) {
      promises_[kept - 1] = std::move(one);
    }
  }
  promises_.resize(kept);
  return all;
}

void ConservativeLoop::wake(FleetTime now) {
  plan_.advance(now);
  power_.advance(now);
  if (void_ && !refresh(now)) renew(now);
  for (const std::uint32_t job : come_) {
    Promise one{.job = state_.waiting_job(job)};
    promise(one, now);
    promises_.push_back(std::move(one));
  }
  come_.clear();
  if (start_due(now)) return;
  // Somebody took longer than was expected.
  renew(now);
  start_due(now);
}

}  // namespace orrery
