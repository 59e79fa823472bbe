// SPDX-License-Identifier: Apache-2.0
// Reads settings of stacks.
#pragma once

#include "sim/base/json/json.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Sets what the object `settings` names. Error on a key that no stack has.
void apply_settings(Stack& stack, const JsonValue& settings);

}  // namespace orrery
