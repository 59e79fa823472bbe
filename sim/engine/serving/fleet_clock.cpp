// SPDX-License-Identifier: Apache-2.0
// Orders what happens at one time, and releases what waits for an answer.
#include "sim/engine/serving/fleet_clock.h"

#include <algorithm>
#include <limits>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

std::size_t count_all(const std::vector<ClockGroup>& groups) {
  std::size_t all = 0;
  for (const ClockGroup& group : groups) all += group.replicas;
  return all;
}

}  // namespace

FleetClock::FleetClock(const std::vector<ClockGroup>& groups, const TransferPrices* transfers,
                       const std::vector<std::uint32_t>* own,
                       const std::vector<std::int32_t>& follower, std::int32_t first_replica,
                       std::vector<RequestRecord>& records)
    : list_(groups.front().run.requests),
      policy_(groups.front().run.policy),
      transfers_(transfers),
      own_(own),
      follower_(follower),
      first_replica_(first_replica),
      records_(records),
      ledger_{records, totals, gaps},
      times_(count_all(groups), end_of_time),
      reads_after_launch_(groups.front().run.shape.reads_after_launch) {
  replicas_.reserve(times_.size());
  for (const ClockGroup& group : groups) {
    groups_.push_back({RequestRouter(group.router, list_, group.replicas, group.run.seed),
                       replicas_.size(), group.replicas});
    for (std::size_t i = 0; i < group.replicas; ++i)
      replicas_.emplace_back(group.run, ledger_,
                             first_replica + static_cast<std::int32_t>(replicas_.size()));
  }
  if (groups.size() > 1) links_.resize(groups.front().replicas);
}

// The next request whose client sends it by itself. A closed loop's first ones do.
bool FleetClock::next_own(Ticks& time, std::uint32_t& request) {
  std::size_t all = own_ ? own_->size() : list_.requests.size();
  if (list_.concurrency > 0) all = std::min(all, static_cast<std::size_t>(list_.concurrency));
  for (; next_ < all; ++next_) {
    request = own_ ? (*own_)[next_] : static_cast<std::uint32_t>(next_);
    if (list_.requests[request].after >= 0) continue;
    time = list_.requests[request].arrival;
    return true;
  }
  return false;
}

void FleetClock::run(const ServingOptions& options) {
  if (options.log) {
    steps.most = options.log->most;
    ledger_.log = &steps;
  }
  for (std::int64_t events = 0;; ++events) {
    Ticks now = times_.least(), time;
    std::uint32_t request = 0;
    if (next_own(time, request)) now = min(now, time);
    if (events_.peek(time)) now = min(now, time);
    if (now == end_of_time) break;
    if (options.stop && options.stop->load(std::memory_order_relaxed)) {
      stopped = true;
      break;
    }
    end = now;
    while (times_.least() == now) settle(now, times_.best());
    while (arrivals_at(now)) {
    }
    for (const std::uint32_t replica : awake_) {
      replicas_[replica].start(now);
      times_.set(replica, replicas_[replica].next());
      if (options.check)
        CHECK_THAT(replicas_[replica].consistent(), "blocks of an engine do not add up");
    }
    awake_.clear();
    hand_over(now);
    if (options.progress && (events & 0xFFFF) == 0xFFFF) options.progress(done_);
  }
  for (Replica& replica : replicas_) replica.close(end);
  in_system.change(end, 0);
}

// One of those that arrive at this time; false when there is none.
bool FleetClock::arrivals_at(Ticks now) {
  Ticks time;
  std::uint32_t request = 0;
  if (next_own(time, request) && time == now) {
    ++next_;
    leave(now, request);
    return true;
  }
  Event event;
  if (!events_.peek(time) || time > now) return false;
  events_.pop(time, event);
  request = static_cast<std::uint32_t>(event.a);
  if (event.kind != transferred) {
    event.kind == arrival ? arrive(now, request) : finished(now, request);
    return true;
  }
  const auto from = static_cast<std::size_t>(event.b);
  replicas_[from].sent(request);
  if (!replicas_[from].busy()) awake_.push_back(static_cast<std::uint32_t>(from));
  const std::int32_t anew = policy_.first_token_anew ? 1 : 0;
  send(now, 1,
       {.request = request,
        .emitted = 1 - anew,
        .saved = list_.requests[request].prompt - anew,
        .foreign = true,
        .since = now});
  return true;
}

Ticks FleetClock::front_of(std::uint32_t request) const {
  return policy_.front_of(list_.requests[request].prompt);
}

// The client sends it at this time, or at one to come.
void FleetClock::leave(Ticks at, std::uint32_t request) {
  records_[request].arrival = at;
  events_.push(at + front_of(request), {arrival, request, 0});
}

void FleetClock::arrive(Ticks now, std::uint32_t request) {
  in_system.change(now, 1);
  in_system.area += front_of(request).ps;  // it left its client before
  send(now, 0, {.request = request, .since = now});
}

void FleetClock::send(Ticks now, std::size_t group, const Waiting& waiting) {
  Group& to = groups_[group];
  const Request& request = list_.requests[waiting.request];
  const std::size_t engine = to.router.choose(waiting.request), at = to.first + engine;
  Replica& replica = replicas_[at];
  RequestRecord& record = records_[waiting.request];
  record.replica = first_replica_ + static_cast<std::int32_t>(at);
  if (group == 0) {
    const bool fits = replica.fits(request) && replicas_.back().fits(request);
    if (!fits || (policy_.queue_limit > 0 && replica.waiting() >= policy_.queue_limit)) {
      record.state = RequestState::rejected;
      to.router.ended(engine, waiting.request);
      answered(now, waiting.request);
      return;
    }
  }
  if (replica.enqueue(now, waiting)) times_.set(at, replica.next());
  if (!replica.busy()) awake_.push_back(static_cast<std::uint32_t>(at));
}

void FleetClock::settle(Ticks now, std::size_t replica) {
  times_.set(replica, end_of_time);
  ended_.clear();
  replicas_[replica].settle(now, ended_);
  // When the host reads what ended, the next step tells.
  const bool late = replica < groups_.front().count && reads_after_launch_;
  for (const std::uint32_t request : ended_)
    if (late)
      read_late_.emplace_back(replica, request);
    else
      ended(now, replica, request, {});
  awake_.push_back(static_cast<std::uint32_t>(replica));
}

// What ended now, as late as its engine reads it: when the next step has started, at least.
void FleetClock::hand_over(Ticks now) {
  for (const auto& [replica, request] : read_late_)
    ended(now, replica, request, max(Ticks{1}, replicas_[replica].reads_late()));
  read_late_.clear();
}

void FleetClock::ended(Ticks now, std::size_t replica, std::uint32_t request, Ticks late) {
  const std::size_t group = groups_.size() > 1 && replica >= groups_[1].first ? 1 : 0;
  groups_[group].router.ended(replica - groups_[group].first, request);
  const Request& r = list_.requests[request];
  if (group == 0 && groups_.size() > 1 && r.output > 1) {
    Ticks& link = links_[replica];
    link = max(link, now + late) + transfers_->on_link(r.prompt);
    const Ticks there = link + transfers_->latency(r.prompt);
    totals.on_the_way += (there - now).ps;
    events_.push(there, {transferred, request, static_cast<std::int64_t>(replica)});
    return;
  }
  records_[request].last += late;
  totals.read_late += late.ps;
  if (late > Ticks{})
    events_.push(now + late, {read, request, 0});
  else
    finished(now, request);
}

void FleetClock::finished(Ticks now, std::uint32_t request) {
  records_[request].state = RequestState::finished;
  answered(now, request);
}

// Whoever waited for the answer goes on.
void FleetClock::answered(Ticks now, std::uint32_t request) {
  ++done_;
  in_system.change(now, -1);
  const std::size_t all = list_.requests.size();
  if (list_.concurrency > 0 && next_ < all) leave(now, static_cast<std::uint32_t>(next_++));
  if (follower_.empty() || follower_[request] < 0) return;
  if (records_[request].state == RequestState::rejected) return;  // its session ends
  const auto next = static_cast<std::uint32_t>(follower_[request]);
  leave(now + list_.requests[next].arrival, next);
}

}  // namespace orrery
