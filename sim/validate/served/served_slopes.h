// SPDX-License-Identifier: Apache-2.0
// Knows how predictions of served runs move with those values of their stacks that such runs made.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "sim/validate/fit/fit.h"
#include "sim/validate/served/served_rows.h"

namespace orrery {

// A predicted row, and the logarithm of what it predicts as a function of values: deviations from
// the middles of their priors (step_prior), one number for all releases of a stack. Straight lines
// on either side of the values as shipped.
struct ServedSlopes {
  ServedRow shipped;
  std::string stack;       // name without release
  std::vector<double> at;  // where the shipped values lie, as long as the stack's names
  struct Lines {
    std::vector<double> below, above;  // change of the logarithm with one deviation
  };
  std::array<Lines, 3> lines;  // of each quantity

  // With the values so many deviations from the middles of their priors.
  double log_predicted(ServedQuantity quantity, std::span<const double> deviations) const;
};

// Names of the values of a stack that whole served runs have made, over all its releases.
using ServedValueNames = std::map<std::string, std::vector<std::string>>;

struct ServedModel {
  ServedValueNames names;  // by stack
  std::vector<ServedSlopes> rows;
};
// Those rows that are predicted; they must outlive it. Serves each row once as shipped and twice
// for each value.
ServedModel served_model(const std::vector<ServingRow>& rows, const FitRun& run);

}  // namespace orrery
