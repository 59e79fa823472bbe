// SPDX-License-Identifier: Apache-2.0
// Knows how plain JSON text becomes a document quickly; whatever it is not sure of it leaves alone.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/json/tree.h"

namespace orrery {

// The document of a text that is strict JSON of ASCII characters; none for everything else, right
// or wrong: the strict parser reads that, and says what is wrong with it. Where there is a
// document, it is the one that the strict parser makes of the text.
std::optional<SortedJson> parse_quickly(std::string_view text);

}  // namespace orrery
