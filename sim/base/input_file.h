// SPDX-License-Identifier: Apache-2.0
// Knows how a whole file is read.
#pragma once

#include <filesystem>
#include <string>

namespace orrery {

// Its bytes as they are; "" where it cannot be opened. Files that people write are read through
// JsonValue::load(), read_csv() and observe::ByteStream, which say what is wrong with them.
std::string content_of(const std::filesystem::path& file);

}  // namespace orrery
