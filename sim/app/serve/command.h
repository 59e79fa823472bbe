// SPDX-License-Identifier: Apache-2.0
// Knows the command `serve`.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/app/answer/answer.h"
#include "sim/app/line/command.h"
#include "sim/base/json/json.h"

namespace orrery {

Command serve_command();
// The answer to a question that was asked before.
MachineAnswer serve_again(const JsonValue& question, std::optional<std::uint64_t> seed,
                          int threads);

}  // namespace orrery
