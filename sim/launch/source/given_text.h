// SPDX-License-Identifier: Apache-2.0
// Knows how a file of a stranger becomes text.
#pragma once

#include <filesystem>
#include <string>

namespace orrery {

// Text of a configuration. Error: a file that questions may not name, that is none, is longer than
// configurations are, is empty, or is no text (UTF-8 without control characters).
std::string given_text(const std::filesystem::path& file);
// The same of text that is there already.
void check_given_text(const std::string& text, const std::string& file);

}  // namespace orrery
