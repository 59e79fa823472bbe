// Knows the answer to a question about a program that does not run on a machine.
#pragma once

#include <optional>
#include <string>

#include "sim/advise/advisor.h"
#include "sim/app/command.h"
#include "sim/engine/scenario.h"

namespace orrery {

// The answer in place of a prediction: what was asked, and why it does not run. nullopt: it does.
std::optional<std::string> refusal(const Scenario& scenario, const CommonFlags& common);
// Of every precision that is asked for.
std::optional<std::string> refusal(const Question& question, const CommonFlags& common);

}  // namespace orrery
