// SPDX-License-Identifier: Apache-2.0
// Keeps jobs with time to spare back until energy is cheap or clean.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "sim/engine/fleet/fleet_state.h"
#include "sim/engine/power/fleet_hours.h"

namespace orrery {

// What a power of one costs over a window of hours with weights: exact, so that equals are equal.
class HourCosts {
 public:
  explicit HourCosts(const std::vector<std::int64_t>& weights);
  FleetTime end() const;  // nothing is known beyond
  // Of [from, from + length], which ends by end().
  __int128 cost(FleetTime from, FleetTime length) const {
    return until(from + length) - until(from);
  }
  // The first of the cheapest starts in [first, last]; last + length <= end().
  FleetTime cheapest(FleetTime first, FleetTime last, FleetTime length) const;

 private:
  __int128 until(FleetTime at) const;
  const std::vector<std::int64_t>& weights_;
  std::vector<__int128> sums_;  // of the hours before each
};

// A job is moved as a whole: it comes into the waiting list when the cheapest window of its limit
// begins that ends by its deadline, the first of equals. Meanwhile it is in nobody's way. Then it
// waits as others do, so that it may end after its deadline where it finds no place.
class DelayGate {
 public:
  DelayGate(FleetState& state, const FleetQuestion& question);
  // Whether a job that comes now is kept back.
  bool hold(std::uint32_t job, FleetTime now);
  FleetTime next() const { return held_.empty() ? fleet_never : held_.top().first; }
  // The next job whose time has come; there is one: next() <= now.
  std::uint32_t take();

 private:
  using Held = std::pair<FleetTime, std::uint32_t>;  // until, job
  FleetState& state_;
  FleetTime horizon_;
  HourCosts costs_;
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;
};

}  // namespace orrery
