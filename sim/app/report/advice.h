// SPDX-License-Identifier: Apache-2.0
// Knows the parts of an advice: tables of layouts, the plan in words, reasons.
#pragma once

#include "sim/advise/advisor.h"
#include "sim/paper/document.h"

namespace orrery {

// The best layouts.
void add_candidates(Document& document, const Question& question, const Advice& advice);
// The front of speed against memory or energy; nothing when it was not asked for.
void add_front(Document& document, const Question& question, const Advice& advice);

// Which layers, ranks and gradients go where, in words.
void add_plan(Document& document, const Scenario& scenario);

// How sure the order of the best is.
void add_ranking(Document& document, const Question& question, const Advice& advice);
// What limits the step and what would make it faster; nothing where nothing was asked.
void add_limits(Document& document, const Reasons& reasons, Seconds step);
void add_traps(Document& document, const Reasons& reasons);
// Ready to paste.
void add_flags(Document& document, const Reasons& reasons);
// Against what runs now; nothing when that was not said.
void add_comparison(Document& document, const Advice& advice);

}  // namespace orrery
