// SPDX-License-Identifier: Apache-2.0
// Gives the figures of served runs that gates hold.
#pragma once

#include <vector>

#include "sim/validate/rows/aliases.h"
#include "sim/validate/score/groups.h"
#include "sim/validate/served/served_rows.h"

namespace orrery {

// The shipped tables (validation/measurements/serving/*.csv), in order of their names.
std::vector<ServingRow> shipped_serving_rows(const Aliases& aliases);

// Groups "served runs" (without guessed tokens) and "served runs, guessed tokens": median and 90th
// percentile of |error| by quantity (`tpot_median`, `tpot_p90`, `ttft_median`, ...).
std::vector<GroupFigures> served_gate_figures(const std::vector<ServedRow>& rows);

}  // namespace orrery
