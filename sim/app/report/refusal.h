// SPDX-License-Identifier: Apache-2.0
// Says that a program does not run on a machine, and why.
#pragma once

#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/refusal.h"

namespace orrery {

// The answer in place of a prediction.
Document refusal_document(const Refusal& refusal);
Json refusal_json(const Refusal& refusal);
Json refused_advice_json(const Refusal& refusal);

}  // namespace orrery
