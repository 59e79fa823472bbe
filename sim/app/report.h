// Knows how results look to a person.
#pragma once

#include <string>

#include "sim/advise/advisor.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/prediction.h"

namespace orrery {

std::string prediction_report(const Scenario& scenario, const Prediction& prediction);
std::string advice_report(const Question& question, const Advice& advice);

// Machine-readable: every field, SI units in the key names.
std::string prediction_json(const Scenario& scenario, const Prediction& prediction);
std::string advice_json(const Question& question, const Advice& advice);

}  // namespace orrery
