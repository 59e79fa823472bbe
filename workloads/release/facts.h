// SPDX-License-Identifier: Apache-2.0
// Finds what the launch programs of a stack set for a model at a release.
#pragma once

#include <optional>
#include <string>

#include "sim/base/json/json.h"
#include "workloads/release/context.h"

namespace orrery {

struct RecipeFacts {
  JsonValue block;       // {"use": [..], "set": {..}}; empty where no vote is held
  bool of_most = false;  // no script names the model or its family
};

// Of a file of facts, catalog/recipes/<stack>.json. Of the model's own
// facts, else those of a model of its family, else those of most families with experts or without,
// those of the last release up to `release` that are for the task, device and precision. Those for
// another precision of the device come before those of the next kind. Nothing where none are.
std::optional<RecipeFacts> recipe_facts(const JsonValue& file, const StackContext& context,
                                        const std::string& release);

}  // namespace orrery
