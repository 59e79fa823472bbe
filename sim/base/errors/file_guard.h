// SPDX-License-Identifier: Apache-2.0
// Knows which files a question may name: any on a command line, none but the program's own where
// questions come over a network.
#pragma once

#include <filesystem>

namespace orrery {

// From now on this process reads no file that a question names but those below the folder.
void allow_files_only_below(const std::filesystem::path& folder);

// Error where it lies elsewhere; whether it exists is not told.
void check_file_allowed(const std::filesystem::path& file);

}  // namespace orrery
