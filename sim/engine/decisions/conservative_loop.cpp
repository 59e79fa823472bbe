// SPDX-License-Identifier: Apache-2.0
// Keeps a plan of all that runs and waits.
#include "sim/engine/decisions/conservative_loop.h"

#include <algorithm>

namespace orrery {
namespace {

bool is_free(const Slots& slots, const Grants& place) {
  return std::all_of(place.begin(), place.end(), [&](const HostGrant& grant) {
    for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
      if (slots.free_of(host) < grant.gpus) return false;
    return true;
  });
}

}  // namespace

// Who takes no time at all holds a place for an instant.
FleetTime ConservativeLoop::Promise::end() const { return at + std::max(job.limit, FleetTime{1}); }

FleetTime ConservativeLoop::next() const {
  FleetTime first = fleet_never;
  for (const Promise& one : promises_) first = std::min(first, one.at);
  return first;
}

ConservativeLoop::ConservativeLoop(FleetState& state, const FleetQuestion& question)
    : state_(state),
      placer_(question.policy.place, question.seed),
      plan_(question.shape),
      view_(question.shape) {}

// By the rule of places, on what hosts have free all the time.
Grants ConservativeLoop::place_in(const std::vector<std::int32_t>& room, std::int32_t gpus) {
  for (std::int32_t host = 0; host < view_.shape().hosts; ++host) {
    const std::int32_t by = room[static_cast<std::size_t>(host)] - view_.free_of(host);
    const HostGrant change{.host = host, .hosts = 1, .gpus = by > 0 ? by : -by};
    if (by > 0) view_.give({&change, 1});
    if (by < 0) view_.take({&change, 1});
  }
  Grants place;
  placer_.find(view_, gpus, place);
  return place;
}

// Earlier than it stood, if there is room.
void ConservativeLoop::promise(Promise& promise, FleetTime now) {
  const bool stood = promise.at != fleet_never;
  if (stood) plan_.give(promise.place, promise.at, promise.end());
  std::vector<std::int32_t> room;
  const FleetTime at = plan_.find(promise.job.gpus, promise.job.limit, promise.at, room);
  if (at < promise.at) {
    promise.at = at;
    promise.place = place_in(room, promise.job.gpus);
  }
  if (promise.at == fleet_never) return;
  plan_.take(promise.place, promise.at, promise.end());
  if (promise.at <= now) return;
  FleetTime& told = state_.records[promise.job.job].promise;
  told = std::min(told, promise.at);
}

void ConservativeLoop::renew(FleetTime now) {
  void_ = false;
  come_.clear();
  plan_.clear(now, state_.slots());
  state_.promised().each([&](const RunningEnd& end) {
    const Grants all{{.host = 0, .hosts = 1, .gpus = end.gpus}};
    plan_.give(state_.is_pool() ? all : state_.grants_of(end.job), end.at, fleet_never);
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
    if (old->at == fleet_never || !plan_.has_room(old->place, old->at, old->end())) continue;
    one = std::move(*old);
    plan_.take(one.place, one.at, one.end());
  }
  promises_ = std::move(waiting);
  for (Promise& one : promises_) promise(one, now);
}

// Whether all whose time has come had their places.
bool ConservativeLoop::start_due(FleetTime now) {
  std::size_t kept = 0;
  bool all = true;
  for (Promise& one : promises_) {
    const bool due = one.at <= now;
    all = all && (!due || is_free(state_.slots(), one.place));
    if (all && due)
      state_.begin_waiting_job(one.job.job, now, one.place);
    else if (&promises_[kept++] != &one)
      promises_[kept - 1] = std::move(one);
  }
  promises_.resize(kept);
  return all;
}

void ConservativeLoop::wake(FleetTime now) {
  plan_.advance(now);
  if (void_) renew(now);
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
