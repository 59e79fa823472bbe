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

// A gang's hosts of each group that it has a part of.
std::map<std::int32_t, std::int32_t> hosts_by_group(const Grants& place, std::int32_t reach) {
  std::map<std::int32_t, std::int32_t> hosts;
  for (const HostGrant& grant : place)
    for (std::int32_t h = grant.host; h < grant.host + grant.hosts;) {
      const std::int32_t end = std::min((h / reach + 1) * reach, grant.host + grant.hosts);
      hosts[h / reach] += end - h;
      h = end;
    }
  return hosts;
}

// Its kind of work on so many accelerators.
std::uint16_t work_on(const ClusterJob& job, const FleetQuestion& question, std::int32_t gpus) {
  if (gpus == job.gpus || job.sizes == 0 || question.sizes.empty()) return job.work;
  for (const WorkSize& size : question.sizes[job.sizes - 1U])
    if (size.gpus == gpus) return size.work;
  return job.work;
}

}  // namespace

TrunkMeetings::TrunkMeetings(FleetState& state, const FleetQuestion& question)
    : state_(state), question_(question) {
  if (question.policy.place == JobPlace::least_contention && question.prices != nullptr)
    state.set_judge(*this);
}

// Puts those that came on their trunks, and takes those that left off; whether anything changed
// since settle().
bool TrunkMeetings::refresh() {
  for (const std::uint32_t job : state_.sharers.left) go(job);
  for (const std::uint32_t job : state_.sharers.begun) {
    if (!state_.sharing().contains(job)) continue;
    come(job);
    touched_.insert(job);  // if it meets nobody, too: its cap may have changed
  }
  state_.sharers.begun.clear();
  state_.sharers.left.clear();
  for (const Trunk& trunk : changed_) {
    look_again(trunk);
    for (const Part& part : on_trunk_[trunk]) touched_.insert(part.job);
  }
  changed_.clear();
  return !touched_.empty();
}

double TrunkMeetings::loss_of(std::uint32_t job) const {
  double loss = 0;
  const auto losses = losses_.find(job);
  if (losses != losses_.end())
    for (const auto& [trunk, lost] : losses->second) loss = std::max(loss, lost);
  return loss;
}

bool TrunkMeetings::settle(FleetTime now) {
  if (!refresh()) return false;
  bool any = false;
  for (const std::uint32_t job : touched_) {
    if (!state_.sharing().contains(job)) continue;  // it left
    const double loss = loss_of(job);
    const std::int64_t placed = state_.sharing().at(job).step_ps;
    const std::int64_t capped = state_.capped_ps(job, placed);
    const std::int64_t alone = placed + capped;
    const std::int64_t step_ps =
        loss > 0 ? std::llround(static_cast<double>(alone) * (1 + loss)) : alone;
    any = any || state_.run_of(job).step_ps != step_ps;
    state_.change_speed(job, now, step_ps, capped);
  }
  touched_.clear();
  return any;
}

TrunkMeetings::PartsByTrunk TrunkMeetings::parts_on(const PlacePrice& price, const Grants& place,
                                                    std::int64_t capped_ps) const {
  PartsByTrunk out;
  const SlotShape& shape = state_.slots().shape();
  const double placed = static_cast<double>(price.step_ps);
  // A cap makes it compute for longer between the same transfers.
  const double step = placed + static_cast<double>(capped_ps);
  const double sends = placed / step;
  for (std::size_t level = 0; level < price.trunks.size(); ++level) {
    const TrunkTraffic& traffic = price.trunks[level];
    if (!(traffic.load > 0)) continue;
    const std::int32_t reach = shape.levels[level].reach;
    const auto hosts = hosts_by_group(place, reach);
    if (hosts.size() < 2) continue;  // nothing leaves the group
    for (const auto& [group, count] : hosts) {
      const double part = static_cast<double>(count) / reach;
      out.push_back({{level, group},
                     {.step = step * 1e-12,
                      .busy = std::min(1.0, traffic.busy) * sends,
                      .load = std::min(1.0, traffic.load * part),
                      .hidden = std::min(1.0, traffic.hidden * part) * sends,
                      .uplinks = traffic.uplinks,
                      .paths = traffic.paths,
                      .leaves = static_cast<std::int32_t>(hosts.size()) * traffic.switches}});
    }
  }
  return out;
}

void TrunkMeetings::come(std::uint32_t job) {
  if (trunks_of_.contains(job)) go(job);  // it left and began again at one instant
  const PlacePrice& price = state_.sharing().at(job);
  for (const auto& [trunk, user] :
       parts_on(price, state_.grants_of(job), state_.capped_ps(job, price.step_ps))) {
    on_trunk_[trunk].push_back({job, user});
    trunks_of_[job].push_back(trunk);
    changed_.insert(trunk);
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

void TrunkMeetings::sort(std::vector<Part>& parts) {
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.user == b.user ? a.job < b.job : goes_first(a.user, b.user);
  });
}

void TrunkMeetings::look_again(const Trunk& trunk) {
  std::vector<Part>& parts = on_trunk_[trunk];
  sort(parts);
  const std::vector<double> losses = losses_of(parts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (losses[i] > 0)
      losses_[parts[i].job][trunk] = losses[i];
    else
      losses_[parts[i].job].erase(trunk);
  }
}

std::vector<double> TrunkMeetings::losses_of(const std::vector<Part>& parts) {
  if (parts.size() < 2) return std::vector<double>(parts.size(), 0.0);
  std::vector<LinkUser> users;
  for (const Part& part : parts) users.push_back(part.user);
  const auto known = known_.find(users);
  if (known != known_.end()) return known->second;
  return known_.emplace(users, sharing_losses(users, question_.meeting)).first->second;
}

bool TrunkMeetings::meets(std::uint32_t job, const Grants& place) {
  refresh();
  if (trunks_of_.empty() || !state_.work_of(job).priced) return false;
  const auto& levels = state_.slots().shape().levels;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const auto hosts = hosts_by_group(place, levels[level].reach);
    if (hosts.size() < 2) return false;  // nor above
    for (const auto& [group, count] : hosts) {
      const auto there = on_trunk_.find({level, group});
      if (there == on_trunk_.end()) continue;
      for (const Part& part : there->second)
        if (part.job != job) return true;
    }
  }
  return false;
}

double TrunkMeetings::used(std::size_t level, std::int32_t group) {
  const auto there = on_trunk_.find({level, group});
  double sum = 0;
  if (there != on_trunk_.end())
    for (const Part& part : there->second)
      sum += part.user.busy * part.user.load + part.user.hidden;
  return sum;
}

// `met`: their losses on the links on which they meet a job.
double TrunkMeetings::lost_by_others(
    const std::map<std::uint32_t, std::map<Trunk, double>>& met) const {
  double sum = 0;
  for (const auto& [other, on] : met) {
    double then = 0;
    for (const auto& [trunk, loss] : on) then = std::max(then, loss);
    const auto now = losses_.find(other);
    if (now != losses_.end())
      for (const auto& [trunk, loss] : now->second)
        if (!on.contains(trunk)) then = std::max(then, loss);
    sum += state_.job(other).gpus * (1 / (1 + loss_of(other)) - 1 / (1 + then));
  }
  return sum;
}

double TrunkMeetings::lost(std::uint32_t job, const Grants& place) {
  refresh();
  const bool stands = trunks_of_.contains(job);
  if (stands) {
    go(job);
    refresh();
  }
  const std::int32_t gpus = gpus_of_place(place);
  const std::uint16_t work = work_on(state_.job(job), question_, gpus);
  const PlacePrice price = question_.prices->price(work, place);
  double own = 0;
  std::map<std::uint32_t, std::map<Trunk, double>> met;
  for (const auto& [trunk, user] : parts_on(price, place, 0)) {
    const auto there = on_trunk_.find(trunk);
    if (there == on_trunk_.end() || there->second.empty()) continue;
    std::vector<Part> parts = there->second;
    parts.push_back({job, user});
    sort(parts);
    const std::vector<double> losses = losses_of(parts);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].job == job)
        own = std::max(own, losses[i]);
      else
        met[parts[i].job][trunk] = losses[i];
    }
  }
  if (stands) {
    come(job);
    refresh();
  }
  const double alone = static_cast<double>(question_.works[work].step_ps);
  const double there = static_cast<double>(price.step_ps) * (1 + own);
  return gpus * (1 - alone / there) + lost_by_others(met);
}

}  // namespace orrery
