// SPDX-License-Identifier: Apache-2.0
// Knows the command `serve`.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/app/answer/whole.h"
#include "sim/app/line/command.h"
#include "sim/base/json/json.h"
#include "sim/question/serve/serve.h"

namespace orrery {

Command serve_command();
// The answer to a question that was asked before.
MachineAnswer serve_again(const JsonValue& question, std::optional<std::uint64_t> seed,
                          int threads);
// What was found, for machines.
MachineAnswer machine_answer(const Served& served, std::uint64_t seed);
// The same with what it says to people.
WholeAnswer whole_answer(const Served& served, std::uint64_t seed);
inline constexpr std::uint64_t default_serve_seed = 1;

}  // namespace orrery
