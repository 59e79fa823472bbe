// SPDX-License-Identifier: Apache-2.0
// Deals free hosts out to gangs that wait, and takes them back after the timeout.
#include "sim/engine/decisions/gang_loop.h"

#include <algorithm>

namespace orrery {
namespace {

// In order of hosts, neighbours that give the same as one.
Grants joined(Grants place) {
  std::sort(place.begin(), place.end(),
            [](const HostGrant& a, const HostGrant& b) { return a.host < b.host; });
  Grants out;
  for (const HostGrant& grant : place) {
    const bool goes_on = !out.empty() && out.back().gpus == grant.gpus &&
                         out.back().host + out.back().hosts == grant.host;
    if (goes_on)
      out.back().hosts += grant.hosts;
    else
      out.push_back(grant);
  }
  return out;
}

}  // namespace

FleetTime GangLoop::next() const {
  FleetTime first = fleet_never;
  for (const auto& [job, part] : parts_) first = std::min(first, part.until);
  return first;
}

void GangLoop::wake(FleetTime now) {
  if (changed_) leave_hosts_that_are_out();
  changed_ = false;
  give_up_until(now);
  deal(now);
}

// All whose time has come do so before anybody takes what they leave. Where nobody runs, gangs have
// only each other to wait for: all give up with the first of them, for one by one each could take
// again what it left.
void GangLoop::give_up_until(FleetTime now) {
  const bool all = next() <= now && state_.ends().empty();
  std::vector<std::uint32_t> late;
  for (const auto& [job, part] : parts_)
    if (all || part.until <= now) late.push_back(job);
  for (const std::uint32_t job : late) {
    give_back(parts_.at(job));
    parts_.erase(job);
    ++state_.gangs().given_up;
    state_.go_behind(job, now);
  }
}

// What breaks takes the hosts of gangs that do not run, too.
void GangLoop::leave_hosts_that_are_out() {
  for (auto at = parts_.begin(); at != parts_.end();) {
    Part& part = at->second;
    Part left{.place = {}, .until = part.until};
    give_back(part);
    const std::int32_t whole = state_.slots().shape().gpus_per_host;
    for (const HostGrant& grant : part.place)
      for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host) {
        if (state_.slots().is_out(host)) continue;
        take(left, {{.host = host, .hosts = 1, .gpus = grant.gpus}}, grant.gpus);
        left.has_rest = left.has_rest || grant.gpus < whole;
      }
    part = std::move(left);
    at = part.place.empty() ? parts_.erase(at) : std::next(at);
  }
}

void GangLoop::take(Part& part, const Grants& more, std::int32_t gpus) {
  state_.slots().take(more);
  part.place.insert(part.place.end(), more.begin(), more.end());
  part.gpus += gpus;
  state_.gangs().gpus += gpus;
}

void GangLoop::give_back(const Part& part) {
  state_.slots().give(part.place);
  state_.gangs().gpus -= part.gpus;
}

// Of one size nobody gets anything where one that holds nothing got nothing.
void GangLoop::deal(FleetTime now) {
  std::vector<Turn> turns;
  for (const std::uint32_t number : state_.waiting().active()) turns.push_back({number});
  while (!state_.is_full()) {
    Turn* first = nullptr;
    const auto job_of = [&](const Turn& turn) -> const WaitingJob& {
      return state_.waiting().queue(turn.queue).at(turn.place);
    };
    for (Turn& turn : turns) {
      if (turn.place == SizeQueue::none) continue;
      turn.place = state_.waiting().queue(turn.queue).next(turn.from);
      if (turn.place == SizeQueue::none) continue;
      if (first == nullptr || is_before(job_of(turn), job_of(*first))) first = &turn;
    }
    if (first == nullptr) return;
    first->from = first->place + 1;
    if (!try_one(job_of(*first).job, now)) first->place = SizeQueue::none;
  }
}

// Whether others of its size may get something as well.
bool GangLoop::try_one(std::uint32_t number, FleetTime now) {
  const ClusterJob& job = state_.job(number);
  const auto held = parts_.find(number);
  if (held == parts_.end()) {
    Grants place;
    if (state_.find(number, place)) {
      state_.begin_waiting_job(number, now, place);
      return true;
    }
  }
  Part fresh{.place = {}, .until = now + timeout_};
  Part& part = held != parts_.end() ? held->second : fresh;
  const bool took = take_part(job, part);
  if (!took) return held != parts_.end();
  if (held == parts_.end()) parts_[number] = std::move(fresh);
  if (parts_.at(number).gpus == job.gpus) start_whole(number, now);
  return true;
}

// As many whole hosts as are free, and the one for the rest.
bool GangLoop::take_part(const ClusterJob& job, Part& part) {
  const SlotShape& shape = state_.slots().shape();
  const std::int32_t before = part.gpus;
  Grants found;
  if (shape.hosts == 1) {
    const auto gpus = static_cast<std::int32_t>(
        std::min<std::int64_t>(job.gpus - part.gpus, state_.slots().free()));
    if (gpus > 0) take(part, {{.host = 0, .hosts = 1, .gpus = gpus}}, gpus);
    return part.gpus > before;
  }
  const std::int32_t of_host = shape.gpus_per_host, rest = job.gpus % of_host;
  if (job.gpus < of_host) return false;  // one pod on one host
  const std::int32_t whole = job.gpus - rest - (part.gpus - (part.has_rest ? rest : 0));
  const std::int32_t hosts = std::min(whole / of_host, state_.slots().with_free(of_host).size());
  if (hosts > 0 && placer_.find(state_.slots(), hosts * of_host, found))
    take(part, found, hosts * of_host);
  if (rest > 0 && !part.has_rest && placer_.find(state_.slots(), rest, found)) {
    take(part, found, rest);
    part.has_rest = true;
  }
  return part.gpus > before;
}

void GangLoop::start_whole(std::uint32_t number, FleetTime now) {
  const Part part = std::move(parts_.at(number));
  parts_.erase(number);
  give_back(part);
  Grants place = joined(part.place);
  state_.begin_waiting_job(number, now, place);
}

}  // namespace orrery
