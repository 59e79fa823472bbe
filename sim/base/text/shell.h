// SPDX-License-Identifier: Apache-2.0
// Knows how a text becomes one word of a shell, whatever is in it.
#pragma once

#include <string>

namespace orrery {

// In single quotes.
std::string shell_quoted(const std::string& text);
// The same where the text has other signs than those of names, paths and settings.
std::string shell_word(const std::string& text);

}  // namespace orrery
