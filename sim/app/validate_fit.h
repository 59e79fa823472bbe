// Knows how step-level values are fitted to measured runs, with a group of them left out.
#pragma once

#include <string>
#include <vector>

#include "sim/app/validate.h"
#include "sim/app/validate_report.h"

namespace orrery {

// For each source, model family or release (of `kind`): how its rows do as shipped, and when the
// values of their stacks are fitted on all other rows.
std::vector<LeftOut> leave_out_groups(const std::vector<ScoredRow>& rows, const std::string& kind,
                                      const ValidateOptions& options);

// Fitted values per stack, as text for a person who moves them into the catalogue.
std::string fit_text(const std::vector<ScoredRow>& rows, const ValidateOptions& options);

}  // namespace orrery
