// SPDX-License-Identifier: Apache-2.0
// Knows how commands without settings are repeated: as the line that asked them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/answer/printed.h"
#include "sim/base/json/json.h"

namespace orrery {

// Commands whose question is a line: validate, catalog and calibrate.
std::vector<std::string> line_commands();

// The answer for machines again. Tables that the question holds stand in a folder of their
// own meanwhile; measured lines of calibrate are read where they lay.
Printed repeat_line(const std::string& command, const JsonValue& question,
                    std::optional<std::uint64_t> seed, int threads);

}  // namespace orrery
