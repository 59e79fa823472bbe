// SPDX-License-Identifier: Apache-2.0
// Finds who meets whom, and what each loses; each kind of meeting is played out once.
#include "sim/engine/fleet/trunk_meetings.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orrery {
namespace {

// Most work for what is sent first; the rest settles ties.
bool goes_first(const LinkUser& a, const LinkUser& b) {
  const double one = a.busy * a.load * (1 - b.busy), two = b.busy * b.load * (1 - a.busy);
  return one != two ? one < two : a < b;
}

}  // namespace

bool TrunkMeetings::settle(FleetTime now) {
  if (state_.sharers.begun.empty() && state_.sharers.left.empty()) return false;
  for (const std::uint32_t job : state_.sharers.left) go(job);
  std::set<std::uint32_t> jobs;
  for (const std::uint32_t job : state_.sharers.begun) {
    if (!state_.sharing().contains(job)) continue;
    come(job);
    jobs.insert(job);  // if it meets nobody, too: its cap may have changed
  }
  state_.sharers.begun.clear();
  state_.sharers.left.clear();
  for (const Trunk& trunk : changed_) {
    look_again(trunk);
    for (const Part& part : on_trunk_[trunk]) jobs.insert(part.job);
  }
  changed_.clear();
  bool any = false;
  for (const std::uint32_t job : jobs) {
    double loss = 0;
    const auto losses = losses_.find(job);
    if (losses != losses_.end())
      for (const auto& [trunk, lost] : losses->second) loss = std::max(loss, lost);
    const std::int64_t placed = state_.sharing().at(job).step_ps;
    const std::int64_t capped = state_.capped_ps(job, placed);
    const std::int64_t alone = placed + capped;
    const std::int64_t step_ps =
        loss > 0 ? std::llround(static_cast<double>(alone) * (1 + loss)) : alone;
    any = any || state_.run_of(job).step_ps != step_ps;
    state_.change_speed(job, now, step_ps, capped);
  }
  return any;
}

void TrunkMeetings::come(std::uint32_t job) {
  if (trunks_of_.contains(job)) go(job);  // it left and began again at one instant
  const PlacePrice& price = state_.sharing().at(job);
  const SlotShape& shape = state_.slots().shape();
  const double placed = static_cast<double>(price.step_ps);
  // A cap makes it compute for longer between the same transfers.
  const double step = placed + static_cast<double>(state_.capped_ps(job, price.step_ps));
  const double sends = placed / step;
  for (std::size_t level = 0; level < price.trunks.size(); ++level) {
    const TrunkTraffic& traffic = price.trunks[level];
    if (!(traffic.load > 0)) continue;
    const std::int32_t reach = shape.levels[level].reach;
    std::map<std::int32_t, std::int32_t> hosts;  // of the job, by group
    for (const HostGrant& grant : state_.grants_of(job))
      for (std::int32_t h = grant.host; h < grant.host + grant.hosts;) {
        const std::int32_t end = std::min((h / reach + 1) * reach, grant.host + grant.hosts);
        hosts[h / reach] += end - h;
        h = end;
      }
    if (hosts.size() < 2) continue;  // nothing leaves the group
    for (const auto& [group, count] : hosts) {
      const double part = static_cast<double>(count) / reach;
      const Trunk trunk{level, group};
      on_trunk_[trunk].push_back(
          {job,
           {.step = step * 1e-12,
            .busy = std::min(1.0, traffic.busy) * sends,
            .load = std::min(1.0, traffic.load * part),
            .hidden = std::min(1.0, traffic.hidden * part) * sends,
            .uplinks = traffic.uplinks,
            .paths = traffic.paths,
            .leaves = static_cast<std::int32_t>(hosts.size()) * traffic.switches}});
      trunks_of_[job].push_back(trunk);
      changed_.insert(trunk);
    }
  }
}

void TrunkMeetings::go(std::uint32_t job) {
  const auto trunks = trunks_of_.find(job);
  if (trunks == trunks_of_.end()) return;
  for (const Trunk& trunk : trunks->second) {
    std::erase_if(on_trunk_[trunk], [&](const Part& part) { return part.job == job; });
    changed_.insert(trunk);
  }
  trunks_of_.erase(trunks);
  losses_.erase(job);
}

void TrunkMeetings::look_again(const Trunk& trunk) {
  std::vector<Part>& parts = on_trunk_[trunk];
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.user == b.user ? a.job < b.job : goes_first(a.user, b.user);
  });
  std::vector<LinkUser> users;
  for (const Part& part : parts) users.push_back(part.user);
  const std::vector<double> losses = losses_of(users);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (losses[i] > 0)
      losses_[parts[i].job][trunk] = losses[i];
    else
      losses_[parts[i].job].erase(trunk);
  }
}

std::vector<double> TrunkMeetings::losses_of(const std::vector<LinkUser>& users) {
  if (users.size() < 2) return std::vector<double>(users.size(), 0.0);
  const auto known = known_.find(users);
  if (known != known_.end()) return known->second;
  return known_.emplace(users, sharing_losses(users, question_.meeting)).first->second;
}

}  // namespace orrery
