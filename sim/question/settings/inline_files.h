// SPDX-License-Identifier: Apache-2.0
// Knows how a question is made to stand alone: what its files hold takes the place of their names.
#pragma once

#include <optional>
#include <string>

#include "sim/base/json/json.h"

namespace orrery {

// The question with the model that stands on stdin ("-") in place of its name, which is read once,
// and with the settings of a program's configuration in place of its name (`like`).
JsonValue with_input_inline(const JsonValue& question);

// The question with the contents of every file that it names, and of those that they are based on,
// in place of the names; nothing where it names none. Names of the catalogue stay names. The files
// are known to be readable: the question was read before.
std::optional<JsonValue> with_files_inline(const JsonValue& question);

}  // namespace orrery
