// SPDX-License-Identifier: Apache-2.0
// Knows what has to be said beside an answer before its figures are believed.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/scenario.h"

namespace orrery {

// Sentences: a release that nothing is known of, sequences that the model was not trained for.
std::vector<std::string> notes_of(const Scenario& scenario);

}  // namespace orrery
