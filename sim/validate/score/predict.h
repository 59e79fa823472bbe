// SPDX-License-Identifier: Apache-2.0
// Knows how a prepared row is predicted, with or without other step-level values of its stack.
#pragma once

#include <string>

#include "sim/outcome/model_error.h"
#include "sim/validate/score/report.h"

namespace orrery {

// Chooses the recompute that a row leaves blank: the first recipe that the memory model does not
// reject by more than its own error (the run took place, so it fitted), the last when all are.
// Notes the choice in `assumed`.
void settle_recompute(PreparedRow& row, const ModelError& error);

// Seconds of one step with this stack in place of the row's own.
double predict_step(const PreparedRow& row, const Stack& stack);

// The row as simulate takes it, with its cluster copied.
Scenario row_scenario(const PreparedRow& row);

// What of the row says how well it is predicted; every fallback of the reader counts as a blank.
RunKind run_kind(const PreparedRow& row);

// Speed and memory, without the range of the speed. The row is settled (settle_recompute).
RowPrediction predict_speed(const PreparedRow& row);
// Gives a prediction that was made its range, which takes a hundred times as long as the rest: the
// step is predicted anew for both ends of every value that is no fact.
void add_range(RowPrediction& prediction, const PreparedRow& row, const ModelError& error);
// Both.
RowPrediction predict_row(const PreparedRow& row, const ModelError& error);

// tokens/s/GPU of a step that takes `seconds`.
double tokens_per_second(const PreparedRow& row, double seconds);

}  // namespace orrery
