// SPDX-License-Identifier: Apache-2.0
// Says where values come from: titles of sources, and tables of what an answer rests on.
#pragma once

#include <string>

#include "sim/base/json/json.h"
#include "sim/paper/document.h"

namespace orrery {

// "The Llama 3 Herd of Models, https://..., read 2026-11-20"; the id itself where nothing is known.
std::string source_text(const std::string& id);

// Values that are no facts, with the change of the step's time at either end of their range: the
// `most` of most effect (0: all). `assumptions` of a prediction.
Table assumption_table(const JsonValue& assumptions, std::size_t most);

// Everything with evidence in the answer, in full: values, ranges, effects, sources. Empty where it
// holds none.
Document evidence_document(const JsonValue& answer);

}  // namespace orrery
