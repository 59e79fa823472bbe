// SPDX-License-Identifier: Apache-2.0
// Knows how a whole file is read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace orrery {

// Its bytes as they are; "" where it cannot be opened. Files that people write are read through
// JsonValue::load(), read_csv() and observe::ByteStream, which say what is wrong with them.
std::string content_of(const std::filesystem::path& file);
// The same of a file that a user names, of at most so many bytes (whole MiB). Error, which says
// that `expected` was: one that may not be read, a folder, no readable file, a longer one.
std::string bounded_content(const std::filesystem::path& file, std::size_t most_bytes,
                            const std::string& expected);

}  // namespace orrery
