// SPDX-License-Identifier: Apache-2.0
// Knows what has to be said beside an answer before its figures are believed.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/scenario.h"

namespace orrery {

// A sentence where nothing is known of the release that was asked for; else empty.
std::string release_note(const Stack& stack);

// Sentences: a release that nothing is known of, a machine that is hypothetical, sequences that the
// model was not trained for.
std::vector<std::string> notes_of(const Scenario& scenario);

}  // namespace orrery
