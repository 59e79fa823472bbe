// SPDX-License-Identifier: Apache-2.0
// Finds the best of several points with as few runs as it takes to be sure.
#pragma once

#include <vector>

#include "sim/question/schedule/point_runs.h"

namespace orrery {

class Contest {
 public:
  // Both must outlive it. By this figure, of points that turn away as few jobs as any does and
  // keep the limits: whoever leaves out the jobs that are hard to place is done sooner.
  Contest(Scheduled& out, PointRuns& runs, const FleetFigure& figure,
          std::vector<FleetLimit> limits)
      : out_(out), runs_(runs), figure_(figure), limits_(std::move(limits)) {}
  // First seeds for all, twice as many for those that may still be the best, and so on.
  void race();
  // All seeds of all points.
  void run_all();
  // Of the points that may still be the best, by the seeds that all of these have: whether they
  // keep the limits, their chances, the best.
  void choose();
  static constexpr std::int64_t first_seeds = 12;

 private:
  bool is_known(const SchedulePoint& point) const;  // its figure
  double chance_of_a_look() const;
  void rule_out(std::size_t seeds);
  void weigh(const std::vector<std::size_t>& alive, std::size_t seeds);
  std::vector<double> values_of(const SchedulePoint& point, std::size_t seeds) const;

  Scheduled& out_;
  PointRuns& runs_;
  const FleetFigure& figure_;
  std::vector<FleetLimit> limits_;
  std::vector<std::size_t> alive_;  // points that may still be the best
};

}  // namespace orrery
