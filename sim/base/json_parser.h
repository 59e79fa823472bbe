// SPDX-License-Identifier: Apache-2.0
// Knows how JSON text becomes a document: strictly, with the line and column of what is wrong.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace orrery {

inline constexpr int json_depth_limit = 64;
inline constexpr std::size_t json_size_limit = std::size_t{64} << 20U;

// Error (with `file` in it) for anything that is not one JSON value nested at most 64 deep, with
// unique keys and at most 64 MiB long.
nlohmann::json parse_json(std::string_view text, const std::string& file);
// The same without the quick way through plain text: what parse_json() must agree with.
nlohmann::json parse_strictly(std::string_view text, const std::string& file);

}  // namespace orrery
