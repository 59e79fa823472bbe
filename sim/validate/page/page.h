// SPDX-License-Identifier: Apache-2.0
// Knows what a page says of a validation, beside its charts.
#pragma once

#include <string>
#include <vector>

#include "sim/paper/document.h"
#include "sim/validate/score/gates.h"

namespace orrery {

// A section whose text stands as it would in a terminal.
struct PageText {
  std::string title, text;
};

// Figures by group, gates where there are any, rows that are farthest off, errors by bins, `more`
// and what was not scored.
Document validation_document(const std::vector<ScoredRow>& rows,
                             const std::vector<GateVerdict>& gates,
                             const std::vector<PageText>& more);

}  // namespace orrery
