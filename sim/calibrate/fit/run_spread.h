// SPDX-License-Identifier: Apache-2.0
// Knows how much boards differ: what equal shapes took in several runs.
#pragma once

#include <span>

#include "sim/calibrate/log/measurement.h"

namespace orrery {

struct RunSpread {
  int runs = 0;       // that share shapes with another
  double spread = 0;  // standard deviation of a run's time over the mean of all, relative
};

// Of rows that several runs measured alike (OperatorRow::run): each run's median ratio to the mean
// of its shape, and the standard deviation of these over the runs. No runs where none share five
// shapes: so few say nothing of a board.
RunSpread spread_between_runs(std::span<const OperatorRow> rows);

}  // namespace orrery
