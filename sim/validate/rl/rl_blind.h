// SPDX-License-Identifier: Apache-2.0
// Makes ranges of RL steps from the errors of others: those of all other models, or shipped ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/outcome/rl/rl_error.h"
#include "sim/validate/rl/rl_rows.h"

namespace orrery {

// The error of all scored steps; a model's rows on a device count as the root of their number.
// nullopt where none is scored.
std::optional<RlError> rl_error(const std::vector<RlRow>& rows);

// A range of each row, in their order, by shipped errors.
std::vector<RlRange> rl_ranges(const std::vector<RlRow>& rows, const RlError& error);
// By the errors of the rows of all other models. Error for a table of one model.
std::vector<RlRange> rl_ranges_of_others(const std::vector<RlRow>& rows);

// Whether the range holds what was measured; nullopt where nothing was.
std::optional<bool> covers(const RlRange& range, const RlRow& row, RlQuantity quantity);
// The share of measured values that ranges hold.
double covered_share(const std::vector<RlRow>& rows, const std::vector<RlRange>& ranges,
                     RlQuantity quantity);

// Coverage and width of ranges that are made of other models' errors, by model and of all.
std::string rl_blind_text(const std::vector<RlRow>& rows);

}  // namespace orrery
