// SPDX-License-Identifier: Apache-2.0
// Knows how a file beside a question becomes settings: one of ours, or one that starts a program.
#pragma once

#include <optional>
#include <string>

#include "sim/base/json/json.h"
#include "sim/launch/read/given_run.h"

namespace orrery {

// The key under which a question keeps what was read of a program's configuration.
inline constexpr const char* read_from_key = "read_from";

// step: of training, or of a serving engine.
enum class GivenFor : std::uint8_t { training, serving, step };

// Settings of a program's configuration, `read_from` beside them; nullopt: it is a file of ours.
// Error: a configuration of the other kind. What `asked` says is left out.
std::optional<SortedJson> settings_of_configuration(const std::string& file,
                                                    const SortedJson& asked, GivenFor kind);

// What was read of a file, where a question came from one.
std::optional<GivenRun> given_run_in(const JsonValue& settings);

}  // namespace orrery
