// SPDX-License-Identifier: Apache-2.0
// Knows how results look to a person and to a machine.
#pragma once

#include <string>

#include "sim/advise/advisor.h"
#include "sim/app/answer/answer.h"
#include "sim/base/json/tree.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/prediction.h"
#include "sim/outcome/timeline.h"
#include "sim/paper/document.h"

namespace orrery {

// `full`: with the tables that are cut for a terminal, for a design review. `width`: of its text.
Document prediction_document(const Scenario& scenario, const Prediction& prediction,
                             const Reasons& reasons, bool full = false,
                             std::size_t width = page_width);
Document advice_document(const Question& question, const Advice& advice, bool full = false,
                         std::size_t width = page_width);

// Machine-readable: every field, SI units in the key names; what follows an answer's head.
Json prediction_json(const Scenario& scenario, const Prediction& prediction,
                     const std::optional<Reasons>& reasons,
                     const std::optional<Timeline>& timeline);
Json timeline_json(const Timeline& timeline);
Json advice_json(const Question& question, const Advice& advice);

}  // namespace orrery
