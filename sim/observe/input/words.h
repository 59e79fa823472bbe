// SPDX-License-Identifier: Apache-2.0
// Knows how programs write numbers, times and cells in text that people read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/lines.h"

namespace orrery::observe {

// Cells between separators, trimmed; quotes around a cell keep separators in it.
std::vector<std::string_view> cells_of(std::string_view line, char separator);
// Words between blanks.
std::vector<std::string_view> words_of(std::string_view line);

// Whether the word stands anywhere in the line.
inline bool has(std::string_view line, std::string_view word) {
  return line.find(word) != std::string_view::npos;
}

// A whole text as a finite number: "12", "1.5E-3", "1,234" (thousands). Nothing otherwise, also
// for "nan" and "inf".
std::optional<double> number_in(std::string_view text);
// The number at the start of a text; `rest` is what follows it.
std::optional<double> leading_number(std::string_view text, std::string_view* rest = nullptr);
// The same as a whole number within +-9e15.
std::optional<std::int64_t> whole_number_in(std::string_view text);
// A number without its fraction, within +-9e15.
std::optional<std::int64_t> whole_part(std::optional<double> number);

// The number behind the first `key` of the line, blanks between them left out.
std::optional<double> number_after(std::string_view line, std::string_view key);
std::optional<std::int64_t> whole_number_after(std::string_view line, std::string_view key);

// Seconds since 1970 of a time that is written in a line, its first: "2024-05-01 10:00:00,123",
// "2024/05/01 10:00:00.123", "2024-05-01T10:00:00Z"; zones are left out. Nothing where none is.
std::optional<double> clock_in(std::string_view line);
// The same of "20240501" and "10:00:00" apart.
std::optional<double> clock_of(std::string_view date, std::string_view time);

}  // namespace orrery::observe
