// SPDX-License-Identifier: Apache-2.0
// Knows questions about programs that do not run on a machine.
#pragma once

#include <optional>

#include "sim/advise/advisor.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/verdict.h"

namespace orrery {

// What was asked, and why it does not run.
struct Refusal {
  Scenario asked;
  Verdict verdict;
};

// nullopt: the program runs there.
std::optional<Refusal> refusal(const Scenario& scenario);
// Of the first precision asked for in which the program does not run.
std::optional<Refusal> refusal(const Question& question);

}  // namespace orrery
