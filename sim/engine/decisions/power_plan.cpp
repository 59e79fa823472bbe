// SPDX-License-Identifier: Apache-2.0
// Adds jobs to the spans in which they run.
#include "sim/engine/decisions/power_plan.h"

#include <iterator>

namespace orrery {

void PowerPlan::clear(FleetTime now) {
  spans_.clear();
  if (limited_) spans_.emplace(now, FuturePower(state_));
}

void PowerPlan::advance(FleetTime now) {
  if (spans_.empty()) return;
  const auto here = std::prev(spans_.upper_bound(now));
  if (here->first == now) {
    spans_.erase(spans_.begin(), here);
    return;
  }
  const FuturePower power = here->second;
  spans_.erase(spans_.begin(), std::next(here));
  spans_.emplace(now, power);
}

void PowerPlan::split(FleetTime at) {
  const auto before = std::prev(spans_.upper_bound(at));
  if (before->first != at) spans_.emplace(at, before->second);
}

void PowerPlan::change(std::uint32_t job, const Grants& place, FleetTime from, FleetTime to,
                       std::int32_t sign) {
  if (!limited_ || from >= to) return;
  split(from);
  if (to != fleet_never) split(to);
  for (auto span = spans_.find(from); span != spans_.end() && span->first < to; ++span)
    span->second.add(state_.power_user(job), state_.job(job).gpus, place, sign);
}

FuturePower PowerPlan::most(FleetTime from, FleetTime to) const {
  auto span = std::prev(spans_.upper_bound(from));
  FuturePower power = span->second;
  for (++span; span != spans_.end() && span->first < to; ++span) power.raise_to(span->second);
  return power;
}

bool PowerPlan::has_room(std::uint32_t job, const Grants& place, FleetTime from,
                         FleetTime to) const {
  return !limited_ || most(from, to).carries(state_.power_user(job), state_.job(job).gpus, place);
}

std::optional<FleetTime> PowerPlan::blocked_until(std::uint32_t job, FleetTime from,
                                                  FleetTime to) const {
  std::optional<FleetTime> until;
  for (auto span = std::prev(spans_.upper_bound(from)); span != spans_.end() && span->first < to;) {
    const bool refused = span->second.refuses(state_.power_user(job), state_.job(job).gpus);
    ++span;
    if (refused) until = span != spans_.end() ? span->first : fleet_never;
  }
  return until;
}

bool PowerPlan::find(std::uint32_t job, const Slots& free, FleetTime from, FleetTime to,
                     Placer& placer, Grants& out) const {
  return most(from, to).find(state_.power_user(job), state_.job(job).gpus, no_level, free, placer,
                             out, job);
}

}  // namespace orrery
