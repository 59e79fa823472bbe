// SPDX-License-Identifier: Apache-2.0
// Turns JSON text into a document, strictly, and its leaves into text; nlohmann's library behind
// it.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json/tree.h"

namespace orrery {

inline constexpr int json_depth_limit = 64;
inline constexpr std::size_t json_size_limit = std::size_t{64} << 20U;

// Error (with `file` in it) for anything that is not one JSON value nested at most 64 deep, with
// unique keys and at most 64 MiB long.
SortedJson parse_json(std::string_view text, const std::string& file);
// The same without the quick way through plain text: what parse_json() must agree with.
SortedJson parse_strictly(std::string_view text, const std::string& file);
// The same with keys in the order of the text.
Json parse_in_order(std::string_view text, const std::string& file);

// Appends a leaf as JSON: text in quotes (what is no UTF-8 becomes U+FFFD); a number in the fewest
// digits that are read back as the same double, or null where it is not finite.
void append_json_text(std::string& out, std::string_view text);
void append_json_number(std::string& out, double number);

}  // namespace orrery
