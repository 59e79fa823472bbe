// SPDX-License-Identifier: Apache-2.0
// Finds the best of several points with as few runs as it takes to be sure.
#pragma once

#include <vector>

#include "sim/question/schedule/point_runs.h"

namespace orrery {

class Contest {
 public:
  // Both must outlive it. By this figure, of points that keep the limits.
  Contest(Scheduled& out, PointRuns& runs, const FleetFigure& figure,
          std::vector<FleetLimit> limits)
      : out_(out), runs_(runs), figure_(figure), limits_(std::move(limits)) {}
  // First seeds for all, twice as many for those that may still be the best, and so on.
  void race();
  // Of the points that had all seeds: whether they keep the limits, their chances, the best.
  void choose();
  static constexpr std::int64_t first_seeds = 12;

 private:
  bool is_known(const SchedulePoint& point) const;  // its figure
  double chance_of_a_look() const;
  void rule_out(std::size_t seeds);
  void weigh(const std::vector<std::size_t>& alive);
  std::vector<double> values_of(const SchedulePoint& point) const;

  Scheduled& out_;
  PointRuns& runs_;
  const FleetFigure& figure_;
  std::vector<FleetLimit> limits_;
};

}  // namespace orrery
