// SPDX-License-Identifier: Apache-2.0
// Takes a text apart line by line, and a line into its fields.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace orrery {

inline constexpr const char* blank_characters = " \t\r\n";

// Takes the next line off the text, without its end (a break, or a return and a break), and counts
// it.
std::string_view next_line(std::string_view& text, std::size_t& number);
bool is_blank(std::string_view line);
// Without blank characters at its two ends.
std::string_view trimmed(std::string_view text);

// What stands between separators: one more than there are of these.
std::vector<std::string_view> fields_of(std::string_view line, char separator);
// Takes what stands before the first of the separators off the text, and that separator with it.
std::string_view next_part(std::string_view& text, std::string_view separators);

}  // namespace orrery
