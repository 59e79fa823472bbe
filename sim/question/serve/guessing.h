// SPDX-License-Identifier: Apache-2.0
// Reads how an engine guesses tokens ahead: "mtp:2", "eagle3:3", "draft:llama3.2-1b:4", "ngram:4".
#pragma once

#include <optional>

#include "sim/base/json/json.h"
#include "sim/outcome/serving/service.h"
#include "sim/question/settings/catalogues.h"

namespace orrery {

// Of the settings `spec` and `accept`; nothing where no token is guessed ("none", or 0 of them).
// Chances come from `accept`, else from what was measured for the model or its family. Error: a
// kind or number that cannot be, a model without prediction modules, a guesser that is unknown or
// that the engine's layout cannot split, chances that nobody measured and none given.
std::optional<Guessing> read_guessing(const JsonValue& settings, const Model& model,
                                      const EngineLayout& layout, Catalogues& catalogues);

}  // namespace orrery
