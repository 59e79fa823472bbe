// SPDX-License-Identifier: Apache-2.0
// Knows the diagnose command: a real run held against its prediction.
#pragma once

#include "sim/app/answer/answer.h"
#include "sim/app/line/command.h"
#include "sim/paper/document.h"
#include "sim/question/diagnosed.h"

namespace orrery {

Command diagnose_command();

// One run: for people and for machines.
Document diagnosis_document(const Diagnosed& diagnosed, bool full, std::size_t width);
Json diagnosis_json(const Diagnosed& diagnosed);

}  // namespace orrery
