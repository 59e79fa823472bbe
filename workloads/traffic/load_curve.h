// SPDX-License-Identifier: Apache-2.0
// Knows how many requests a second come to a served model over days and weeks.
#pragma once

#include <array>
#include <vector>

#include "sim/base/units/fleet_time.h"
#include "workloads/traffic/traffic.h"

namespace orrery {

// A time in which requests come at one rate.
struct LoadSpan {
  FleetTime from, to;
  double rate = 0;  // requests a second
};

// Rates that hold for a while each, again and again from time 0 on, which is a Monday at 0:00.
class LoadCurve {
 public:
  // Pieces of at least a second each, with a rate above 0 among them (CHECK).
  explicit LoadCurve(const std::vector<RatePiece>& pieces);
  // `peak` in the hour of most requests; the others by their hour's and their weekday's share, each
  // in any unit, Monday first. Shares of 0 or more, some above (CHECK).
  static LoadCurve of_week(double peak, const std::array<double, 24>& by_hour,
                           const std::array<double, 7>& by_weekday);

  double peak() const { return peak_; }
  // In order of time, without a gap; spans that follow each other have different rates.
  std::vector<LoadSpan> spans(FleetTime from, FleetTime to) const;
  // The highest rate at any time of [from, to).
  double most(FleetTime from, FleetTime to) const;

 private:
  std::size_t piece_at(FleetTime in_period) const;

  std::vector<LoadSpan> pieces_;  // of one period
  FleetTime period_;
  double peak_ = 0;
};

}  // namespace orrery
