// SPDX-License-Identifier: Apache-2.0
// Finds the largest rise and fall of what a cluster draws within a span of time.
#pragma once

#include <cstdint>
#include <deque>

#include "sim/base/units/fleet_time.h"

namespace orrery {

struct PowerRamp {
  std::int64_t rise = 0, fall = 0;  // in milliwatts, 0 or more
};

struct PowerRamps {
  PowerRamp minute, quarter;  // within 60 s, within 15 minutes
};

// Takes what is drawn piece by piece, each constant. Between two instants that are at most the span
// apart it rose by so much. A piece that ended before the span is forgotten.
class RampWatch {
 public:
  explicit RampWatch(FleetTime span) : span_(span) {}
  // From `at` on so much is drawn; the first call is what was drawn ever before.
  void draw(FleetTime at, std::int64_t milliwatts);
  const PowerRamp& most() const { return most_; }

 private:
  struct Piece {
    std::int64_t milliwatts = 0;
    FleetTime until = fleet_never;  // where the next piece begins; never: it goes on
  };
  static void end_last(std::deque<Piece>& pieces, FleetTime at);
  void forget(std::deque<Piece>& pieces, FleetTime at) const;

  FleetTime span_;
  std::deque<Piece> low_, high_;  // of the span: ascending, descending; the first is the extreme
  PowerRamp most_;
};

class RampWatches {
 public:
  explicit RampWatches(std::int64_t before) : drawn_(before) {
    minute_.draw({}, before);
    quarter_.draw({}, before);
  }
  // Once an instant, after all that happens then.
  void draw(FleetTime at, std::int64_t milliwatts) {
    if (milliwatts == drawn_) return;
    drawn_ = milliwatts;
    minute_.draw(at, milliwatts);
    quarter_.draw(at, milliwatts);
  }
  PowerRamps most() const { return {minute_.most(), quarter_.most()}; }

 private:
  RampWatch minute_{FleetTime{60'000'000}}, quarter_{FleetTime{900'000'000}};
  std::int64_t drawn_;
};

}  // namespace orrery
