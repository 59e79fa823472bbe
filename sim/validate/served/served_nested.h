// SPDX-License-Identifier: Apache-2.0
// Predicts served runs by values that saw neither their family of models nor their campaign.
#pragma once

#include <vector>

#include "sim/outcome/serving/served_error.h"
#include "sim/validate/nested/report.h"
#include "sim/validate/served/served_fit.h"

namespace orrery {

// One quantity of a row.
struct ServedBlind {
  const ServedSlopes* row = nullptr;
  ServedQuantity quantity = ServedQuantity::tpot;
  double log_error = 0;  // predicted over measured
};

// Every measured quantity, by fits of the stack to what the others measured. A stack that no other
// row uses is predicted from the middles of its priors.
std::vector<ServedBlind> predict_served_blind(const ServedModel& model, const FitRun& run);

// The model's error by those, one vote for each family and engine of a campaign.
ServedError served_error(const std::vector<ServedBlind>& rows, int threads);

// Sets "served TPOT", "served TPOT, disaggregated", ...; a range is made of rows that share neither
// family nor campaign with its own.
NestedErrors served_nested(const std::vector<ServedBlind>& rows, const ServedError& shared);

}  // namespace orrery
