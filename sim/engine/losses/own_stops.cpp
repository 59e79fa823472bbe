// SPDX-License-Identifier: Apache-2.0
// Draws stops of each job from a stream of its own.
#include "sim/engine/losses/own_stops.h"

#include <cmath>

namespace orrery {
namespace {

constexpr std::uint64_t first_stream = 2;  // before: of places, of what breaks

}  // namespace

void OwnStops::push(Stop stop, FleetTime from) {
  const JobWork& work = state_.work_of(stop.job);
  const double rate = (stop.planned ? work.planned_stops : work.own_failures).si();
  if (!(rate > 0)) return;
  const double us =
      static_cast<double>(from.us) + std::round(1e6 * stop.random.exponential(1 / rate));
  if (us >= static_cast<double>(fleet_never.us)) return;
  stop.at.us = static_cast<std::int64_t>(us);
  stops_.push(stop);
}

void OwnStops::submit(std::uint32_t job, FleetTime now) {
  const JobWork& work = state_.work_of(job);
  if (!(work.own_failures.si() > 0 || work.planned_stops.si() > 0)) return;
  const std::uint64_t stream = first_stream + 2 * static_cast<std::uint64_t>(job);
  push({.at = {}, .job = job, .planned = false, .random = RandomStream(seed_, stream)}, now);
  push({.at = {}, .job = job, .planned = true, .random = RandomStream(seed_, stream + 1)}, now);
}

bool OwnStops::stop_until(FleetTime now) {
  bool changed = false;
  while (next() <= now) {
    const Stop stop = stops_.top();
    stops_.pop();
    if (state_.is_over(stop.job, now)) continue;
    if (state_.is_running(stop.job)) {
      if (stop.planned) {
        state_.pause(stop.job, stop.at, state_.work_of(stop.job).stop);
      } else {
        state_.restart(stop.job, stop.at, stop.at, {}, "its software");
      }
      changed = true;
    }
    push(stop, stop.at);
  }
  return changed;
}

}  // namespace orrery
