// SPDX-License-Identifier: Apache-2.0
// Knows how far one name is from another.
#pragma once

#include <cstddef>
#include <string_view>

namespace orrery {

// Levenshtein's distance: characters to insert, delete or replace, without regard to case.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace orrery
