// SPDX-License-Identifier: Apache-2.0
// Finds the cheapest window for a job.
#include "sim/engine/decisions/delay_gate.h"

#include <algorithm>

namespace orrery {

HourCosts::HourCosts(const std::vector<std::int64_t>& weights) : weights_(weights) {
  sums_.reserve(weights.size() + 1);
  sums_.push_back(0);
  for (const std::int64_t weight : weights)
    sums_.push_back(sums_.back() + static_cast<__int128>(weight) * fleet_hour.us);
}

FleetTime HourCosts::end() const {
  return {static_cast<std::int64_t>(weights_.size()) * fleet_hour.us};
}

__int128 HourCosts::until(FleetTime at) const {
  const auto hour = static_cast<std::size_t>(at.us / fleet_hour.us);
  const std::int64_t rest = at.us % fleet_hour.us;
  return sums_[hour] + (rest > 0 ? static_cast<__int128>(weights_[hour]) * rest : 0);
}

// The cost is a line between starts at which a window begins or ends with an hour, so that the
// least is at one of those, or at an end.
FleetTime HourCosts::cheapest(FleetTime first, FleetTime last, FleetTime length) const {
  FleetTime best = first;
  __int128 least = cost(first, length);
  const auto look_at = [&](FleetTime start) {
    if (start < first || start > last) return;
    const __int128 here = cost(start, length);
    if (here > least || (here == least && start >= best)) return;
    least = here;
    best = start;
  };
  const std::int64_t cut = length.us % fleet_hour.us;
  for (std::int64_t hour = first.us / fleet_hour.us * fleet_hour.us; hour <= last.us;
       hour += fleet_hour.us) {
    look_at({hour});
    look_at({hour + (fleet_hour.us - cut) % fleet_hour.us});
  }
  look_at(last);
  return best;
}

DelayGate::DelayGate(FleetState& state, const FleetQuestion& question)
    : state_(state), horizon_(question.horizon), costs_(question.hours.weights) {}

bool DelayGate::hold(std::uint32_t number, FleetTime now) {
  const FleetTime end = std::min({due(state_.job(number)), costs_.end(), horizon_});
  const FleetTime length = state_.waiting_job(number).limit;
  if (due(state_.job(number)) == fleet_never || end - now <= length) return false;
  const FleetTime start = costs_.cheapest(now, end - length, length);
  if (start == now) return false;
  held_.push({start, number});
  return true;
}

std::uint32_t DelayGate::take() {
  const auto [until, job] = held_.top();
  held_.pop();
  state_.records[job].delayed = until - eligible(state_.job(job), state_.records[job]);
  return job;
}

}  // namespace orrery
