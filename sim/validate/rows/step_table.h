// SPDX-License-Identifier: Apache-2.0
// Knows tables of timed training steps of validation's own PyTorch program, as training runs.
#pragma once

#include "sim/base/text/csv.h"
#include "sim/validate/rows/aliases.h"

namespace orrery {

// Whether a table has the columns of such steps: microbatches of a step (nm), sequences of one
// (mbs), how data parallelism wraps the model (wrap), ... and step_s.
bool is_step_table(const CsvTable& table);

// The same rows with the columns of training runs. Machine and framework are aliases.json's
// "training_steps". Error for a cell that is not a number where one belongs.
CsvTable training_runs_of(const CsvTable& steps, const Aliases& aliases);

}  // namespace orrery
