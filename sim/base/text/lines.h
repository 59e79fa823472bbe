// SPDX-License-Identifier: Apache-2.0
// Takes a text apart line by line.
#pragma once

#include <cstddef>
#include <string_view>

namespace orrery {

inline constexpr const char* blank_characters = " \t\r\n";

// Takes the next line off the text, without its end (a break, or a return and a break), and counts
// it.
std::string_view next_line(std::string_view& text, std::size_t& number);
bool is_blank(std::string_view line);

}  // namespace orrery
