// SPDX-License-Identifier: Apache-2.0
// Says what was read of a program's configuration, where a question came from one.
#pragma once

#include <string>

#include "sim/base/json/json.h"
#include "sim/paper/document.h"

namespace orrery {

// "train.sh:12": where a line is found, without folders.
std::string short_place(const std::string& place);
// A section for the configuration of the question, and one for that of `like`; none where neither
// came from a file of a program.
void add_read_from(Document& document, const JsonValue& settings);

}  // namespace orrery
