// Knows how a result reaches the disk: whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace orrery {

// Writes beside the file and renames, so that a reader never sees half of it and a failure leaves
// the old one. What is not a regular file (a pipe, /dev/stdout) is written in place. Error when it
// cannot be written.
void write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace orrery
