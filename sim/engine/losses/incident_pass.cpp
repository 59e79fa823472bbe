// SPDX-License-Identifier: Apache-2.0
// Goes through the moments of all incidents in order, and counts what each costs.
#include "sim/engine/losses/incident_pass.h"

#include <algorithm>
#include <tuple>

namespace orrery {
namespace {

// Of thousandths of accelerators, in picoseconds.
GpuPicos lost_so_far(const FleetState& state) { return state.spent.lost + state.spent.preempted; }

GpuMicros of_spent(GpuPicos spent) { return spent / (INT64_C(1'000'000) * whole_gpu); }

// What it asks for, for so long.
GpuMicros held_for(const ClusterJob& job, FleetTime time) {
  return static_cast<GpuMicros>(milli_gpus(job)) * time.us / whole_gpu;
}

}  // namespace

IncidentPass::IncidentPass(FleetState& state, HostStock& hosts, const FleetQuestion& question)
    : state_(state),
      hosts_(hosts),
      suspend_(state),
      incidents_(question.breakdowns.incidents),
      counts_(question.breakdowns.incidents.size()) {
  for (std::size_t i = 0; i < incidents_.size(); ++i) {
    const Incident& one = incidents_[i];
    if (!does_something(one)) continue;
    if (one.drain)
      moments_.push_back({std::max(one.at - one.announced, FleetTime{}), What::announce, i});
    moments_.push_back({one.at + one.latency, What::strike, i});
    moments_.push_back({one.at + one.length, What::back, i});
  }
  const auto key = [](const Moment& m) { return std::tuple(m.at, m.what, m.incident); };
  std::sort(moments_.begin(), moments_.end(),
            [&](const Moment& a, const Moment& b) { return key(a) < key(b); });
}

bool IncidentPass::happen(FleetTime now) {
  bool changed = false;
  for (; next() <= now; ++done_) {
    const Moment& moment = moments_[done_];
    const std::vector<std::int32_t>& hosts = incidents_[moment.incident].hosts;
    if (moment.what == What::announce) hosts_.drain(hosts);
    if (incidents_[moment.incident].feed >= 0) {
      if (moment.what == What::strike) lose_supply(moment.incident, moment.at);
      if (moment.what == What::back) restore_supply(moment.incident);
    } else {
      if (moment.what == What::strike) strike(moment.incident, moment.at);
      if (moment.what == What::back) hosts_.come_back(moment.at, hosts);
    }
    changed = true;
  }
  return changed;
}

void IncidentPass::strike(std::size_t number, FleetTime now) {
  const Incident& one = incidents_[number];
  IncidentCount& count = counts_[number];
  count.happened = true;
  const std::vector<std::uint32_t> jobs = hosts_.jobs_on(one.hosts);
  const std::vector<std::int32_t> out = hosts_.leave(one.hosts);
  for (const std::int32_t host : out) count.gpus += state_.slots().shape().gpus_of(host);
  for (const std::uint32_t job : jobs) stop(number, job, now);
  hosts_.stand_in(now, out, one.name);
  if (one.drain) hosts_.end_drain(one.hosts);
}

void IncidentPass::stop(std::size_t number, std::uint32_t job, FleetTime now) {
  const Incident& one = incidents_[number];
  IncidentCount& count = counts_[number];
  const GpuPicos before = lost_so_far(state_);
  if (one.drain) {  // it had time to save
    state_.leave(job, now, one.name);
    ++state_.records[job].stops;
  } else {
    state_.requeue(job, now, one.at, {}, one.name);
  }
  count.lost += of_spent(lost_so_far(state_) - before);
  count_stop(number, job, now);
}

void IncidentPass::count_stop(std::size_t number, std::uint32_t job, FleetTime now) {
  IncidentCount& count = counts_[number];
  ++count.stopped;
  const auto save = state_.saves().find(job);
  waiting_[job] = {number, save != state_.saves().end() ? save->second.until : now};
  if (count.largest < 0 ||
      state_.job(static_cast<std::uint32_t>(count.largest)).gpus < state_.job(job).gpus)
    count.largest = job;
}

// Caps fall at the next look at power; who does not fit at the least ones is stopped.
void IncidentPass::lose_supply(std::size_t number, FleetTime now) {
  const Incident& one = incidents_[number];
  IncidentCount& count = counts_[number];
  count.happened = true;
  FeedBudget& feeds = state_.feeds();
  const auto feed = static_cast<std::size_t>(one.feed);
  if (++losses_[one.feed] == 1) {
    limits_[one.feed] = feeds.feeds()[feed].limit;
    feeds.set_limit(feed, one.limit_left);
  }
  std::vector<std::int32_t> hosts;
  for (std::int32_t host = feeds.feeds()[feed].from; host < feeds.feeds()[feed].to; ++host)
    hosts.push_back(host);
  std::vector<std::uint32_t> jobs = hosts_.jobs_on(hosts);
  std::erase_if(jobs, [&](std::uint32_t job) { return state_.saves().contains(job); });
  const GpuPicos before = lost_so_far(state_);
  suspend_.free(
      feeds.loads()[feed] - one.limit_left, now,
      [&](std::uint32_t job) {
        return feeds.of_feed(feed, state_.power_user(job), state_.grants_of(job));
      },
      one.name);
  count.lost += of_spent(lost_so_far(state_) - before);
  for (const std::uint32_t job : jobs)
    if (!state_.is_running(job) || state_.saves().contains(job)) count_stop(number, job, now);
}

void IncidentPass::restore_supply(std::size_t number) {
  const std::int32_t feed = incidents_[number].feed;
  if (--losses_[feed] == 0) state_.feeds().set_limit(static_cast<std::size_t>(feed), limits_[feed]);
}

void IncidentPass::look_at_waiting(FleetTime now) {
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    if (!state_.is_running(one->first) || state_.saves().contains(one->first)) {
      ++one;
      continue;
    }
    counts_[one->second.incident].waited += held_for(state_.job(one->first), now - one->second.at);
    one = waiting_.erase(one);
  }
}

std::vector<IncidentCount> IncidentPass::take_counts(FleetTime now) {
  for (const auto& [job, stopped] : waiting_)
    counts_[stopped.incident].waited +=
        held_for(state_.job(job), std::max(now - stopped.at, FleetTime{}));
  return std::move(counts_);
}

}  // namespace orrery
