// SPDX-License-Identifier: Apache-2.0
// Knows how text that was not run marks the parts that only running it would tell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

// A script's `--nodes $1` is kept as "--nodes" and a word that is marked with "$1": the mark goes
// with the text wherever it is copied, so that nothing that depends on it is taken for a value.
std::string marked(std::string_view what);
// A word that holds only where a condition does that nobody can tell.
std::string marked_condition(std::string_view text, std::int64_t line);
bool has_mark(std::string_view text);
// Its marks alone, to go with another text.
std::string marks_of(std::string_view text);
// Whether nothing but a mark stands there.
bool is_mark(std::string_view text);
// The text as people wrote it: "$1" in place of its mark.
std::string shown(std::string_view text);
// Why its value is not known, as the end of a sentence: "it depends on $1"; empty: it is known.
std::string unknown_reason(std::string_view text);

}  // namespace orrery
